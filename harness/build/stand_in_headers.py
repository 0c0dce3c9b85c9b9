"""A stand-in for ``torch/extension.h`` and its kin, made for one call: the tensor, and the operators it names.

Nothing of PyTorch's is declared anew. The stand-in includes PyTorch's own headers, but one for each operator that
the sources name instead of all, and takes the factories of ``torch::`` as text from the installed ones. Whoever
builds with it must build again without it when that fails: not every source gets by with less.
"""

from __future__ import annotations

import functools
import os
import re
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

STOCK_VARIABLE = "KERNEL_REFEREE_STOCK_HEADERS"
_OPEN = "#pragma once\n#pragma GCC system_header\n"
_CORE, _PYTHON, _CUDA = "kernel_referee/tensor.h", "kernel_referee/python.h", "kernel_referee/cuda_context.h"
_TENSOR_HEADERS = ("torch/types.h", "torch/all.h", "torch/torch.h", "ATen/ATen.h")
_WITH_VERSION = ("torch/extension.h", "torch/all.h", "torch/torch.h")  # PyTorch's own bring its version along

# What stays the same for every call. The first define lets PyTorch's headers include single operators.
_PER_OPERATOR = "\n#ifndef AT_PER_OPERATOR_HEADERS\n#define AT_PER_OPERATOR_HEADERS\n#endif\n"
_ALWAYS = (
    "math.h", "stdlib.h", "algorithm", "cmath", "functional", "iostream", "numeric", "optional", "sstream", "string",
    "unordered_map", "vector", "ATen/core/Tensor.h", "ATen/Device.h", "ATen/Dispatch.h", "ATen/Layout.h",
    "ATen/TensorOperators.h", "ATen/TracerMode.h", "ATen/core/Formatting.h", "ATen/core/LegacyTypeDispatch.h",
    "ATen/core/grad_mode.h", "c10/core/DeviceGuard.h", "c10/core/InferenceMode.h", "c10/util/irange.h", "torch/cuda.h",
)
# A header, and the words in a source that ask for it.
_BY_WORD = {
    "ATen/Parallel.h": ("parallel_for", "parallel_reduce", "get_num_threads", "set_num_threads", "get_thread_num"),
    "ATen/TensorIndexing.h": ("indexing", "Slice", "TensorIndex", "index", "index_put_"),
    "ATen/ExpandUtils.h": ("infer_size", "are_expandable", "expand_inplace", "expand_outplace"),
    "ATen/ScalarOps.h": ("scalar_to_tensor", "wrapped_scalar_tensor"),
    "ATen/Context.h": ("globalContext", "detail", "manual_seed", "default_generator"),
    "ATen/DeviceGuard.h": ("device_of",),
    "torch/detail/TensorDataContainer.h": ("tensor",),
    "bitset": ("bitset",), "chrono": ("chrono",), "list": ("list",), "map": ("map", "multimap"),
    "mutex": ("mutex",), "queue": ("queue", "priority_queue"), "random": ("random", "mt19937"),
    "set": ("set", "multiset"), "stack": ("stack",), "thread": ("thread", "this_thread"), "valarray": ("valarray",),
}
# What these name lies outside the stand-in, or costs as much as all of it.
_STOCK_ONLY = re.compile(
    r"\b(?:torch|at)\s*::\s*(?:nn|autograd|jit|optim|data|serialize|linalg|special|fft|sparse|nested|python|native"
    r"|Library|_ops|meta|functorch)\b|\bTORCH_LIBRARY|\bTHP\w+|<torch/script\.h>|\bTORCH_STABLE_ONLY\b"
    r"|\bTORCH_TARGET_VERSION\b|\bTORCH_ASSERT_"
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">\n]+)[\">]", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
# An operator is named after ::, or is called; what follows a dot or an arrow is a method, and those are all there.
_OPERATOR = re.compile(r"::\s*([A-Za-z_]\w*)|(?<![\w.])(?<!->)([A-Za-z_]\w*)\s*\(")
_SPEAKS_PYTORCH = re.compile(r"torch/|ATen/|c10/|\b(?:torch|at|c10)\s*::")
_SPEAKS_PYTHON = re.compile(r"\b(?:py|pybind11|PYBIND11_\w+|Py[A-Z_]\w*|TORCH_EXTENSION_NAME|wrap_pybind_function)\b")
_SPEAKS_LIBRARIES = re.compile(
    r"\b(?:TORCH_)?(?:CUDA)?(?:cu(?:blas|sparse|solver|dss)|CU(?:DA)?(?:BLAS|SPARSE|SOLVER))"
)
# Each header of an operator brings PyTorch's whole context along, which its few lines do not use.
_CONTEXT_LINE = re.compile(r"#include <ATen/(?:Context|DeviceGuard)\.h>\n")
_VARIANT = re.compile(r"_(?:out|outf|symint)$")
_INCLUDED_ANYWAY = ("alias", "empty", "empty_like", "scalar_tensor", "zeros")
# Words that stand for much else: this factory is there for who names it as one alone.
_OF_MANY_MEANINGS = frozenset({"tensor"})
_FACTORY = re.compile(r"^inline at::Tensor (\w+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
_NAMESPACE = re.compile(r"^namespace torch \{\n.*?^\} // namespace torch\n", re.MULTILINE | re.DOTALL)
_LIBRARY_LINE = re.compile(
    r"#include <cu(?:sparse|blas|blasLt|solver\w*|dss)\w*\.h>|\bcu(?:sparse|blas|blasLt|solverDn)Handle_t\b"
)
# Macros of PyTorch's headers that the stand-in lacks begin so (of 2105 that GCC lists for the one and not for the other,
# those that are neither the system's nor guards of PyTorch's own files).
_THEIRS = re.compile(
    r"\b_?(?:TORCH_|AT_|C10_|CAFFE2?_|D?CHECK|D?V?LOG|PYBIND11_|RECORD_|REGISTER_|FORALL_|MAKE_TORCH_|BUILD_FEATURE_"
    r"|HAS_(?:IMPL_ABSTRACT|PT2)|STRONG_HAS_|SKA_|SOFT_ASSERT|DEFINE_TO|EXPECTED_MAX_LEVEL|FORWARD_HAS_|DYNAMIC_TYPE_BIT)"
)
# What sources ask the preprocessor, where the answer may hang on headers that the stand-in leaves out. A question after
# a macro is answered without a word where its header is missing: it would be another program.
_QUESTION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(.*)", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)", re.MULTILINE)
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_ASKED_WORD = re.compile(r"\b[A-Za-z_]\w*")  # and no suffix of a number
# Answered by a compiler, by its flags or by CUDA's headers, whatever else is included.
_ANSWERED = re.compile(
    r"__\w+|def|ndef|defined|NDEBUG|CUDA_VERSION|CUDART_VERSION|USE_ROCM|_WIN32|_MSC_VER|and|or|not|true|false"
)


def is_wanted() -> bool:
    """Whether builds try the stand-in first; not where $KERNEL_REFEREE_STOCK_HEADERS is set to anything."""
    return not os.environ.get(STOCK_VARIABLE)


def write(
    folder: Path, torch_include: Path, sources: Sequence[str], cuda_sources: Sequence[str], included: Sequence[str] = ()
) -> bool:
    """Write the headers for a call with these texts below `folder`, to be put first on its include path.

    `torch_include` is the folder of PyTorch's headers, `included` are texts of the call's own headers. Returns False, and
    writes nothing, when the texts need what the stand-in does not have, or this PyTorch's headers do not look as
    expected. Raises OSError.
    """
    # Not all that is included: CUTLASS alone names hundreds of things as operators are named.
    text = "\n".join([*sources, *cuda_sources, *filter(_SPEAKS_PYTORCH.search, included)])
    if not _SPEAKS_PYTORCH.search(text) or _STOCK_ONLY.search(text) or _ask_of_pytorchs([text, *included]):
        return False
    core, named = _core(torch_include, text)
    if core is None:
        return False
    python = f"{_OPEN}#include <{_CORE}>\n#include <torch/csrc/Exceptions.h>\n#include <torch/csrc/utils/pybind.h>\n"
    of_cuda = [*cuda_sources, *included]
    only_cpp = not any(_SPEAKS_PYTHON.search(each) for each in of_cuda) and not _may_ask_of_pythons(of_cuda)
    guard = ("#ifndef __CUDACC__\n", "#endif\n") if only_cpp else ("", "")
    files = {
        **_operators(torch_include, named.union(_INCLUDED_ANYWAY)), _CORE: core, _PYTHON: python,
        "torch/extension.h": f"{_OPEN}#include <{_CORE}>\n{guard[0]}#include <{_PYTHON}>\n{guard[1]}",
        **{name: f"{_OPEN}#include <{_CORE}>\n" for name in _TENSOR_HEADERS},
    }
    if (torch_include / "torch/csrc/api/include/torch/version.h").is_file():
        files |= {name: files[name] + "#include <torch/version.h>\n" for name in _WITH_VERSION}
    if not _SPEAKS_LIBRARIES.search(text):
        files |= _cuda_context(torch_include)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return True


def headers_of(texts: Iterable[str], folders: Sequence[Path]) -> list[str]:
    """The texts of the headers below `folders`, or beside whoever includes them, that `texts` and these include.
    Those of the compilers and of PyTorch are not below, and not found.
    """
    text_by_path: dict[Path, str] = {}
    wanted = [(name, folders) for text in texts for name in _INCLUDE.findall(text)]
    while wanted:
        name, places = wanted.pop()
        path = next((place / name for place in places if (place / name).is_file()), None)
        if path is None or path.resolve() in text_by_path:
            continue
        text = text_by_path[path.resolve()] = path.read_text(encoding="utf-8", errors="replace")
        wanted += [(inner, [path.parent, *folders]) for inner in _INCLUDE.findall(text)]
    return list(text_by_path.values())


def _operators(torch_include: Path, named: Iterable[str]) -> dict[str, str]:
    """The headers of those of `named` that are operators, by their path, without the context they bring along."""
    # relu_, sum_out and zeros_symint lie in the headers of relu, sum and zeros.
    named = {each for name in named for each in (name, name.rstrip("_"), _VARIANT.sub("", name))}
    paths = (torch_include / "ATen" / "ops" / f"{name}.h" for name in sorted(named))
    return {
        f"ATen/ops/{path.name}": "#pragma GCC system_header\n" + _CONTEXT_LINE.sub("", path.read_text(encoding="utf-8"))
        for path in paths if path.is_file()
    }


def _core(torch_include: Path, text: str) -> tuple[str | None, set[str]]:
    """The header that all others include, and the operators in it; None when PyTorch's lack the expected parts."""
    api = torch_include / "torch/csrc/api/include/torch/types.h"
    factories = torch_include / "torch/csrc/autograd/generated/variable_factories.h"
    names = _NAMESPACE.search(api.read_text(encoding="utf-8")) if api.is_file() else None
    if names is None or not factories.is_file():
        return None, set()
    made = factories.read_text(encoding="utf-8")
    named, words = {first or second for first, second in _OPERATOR.findall(text)}, set(_WORD.findall(text))
    words -= _OF_MANY_MEANINGS - named
    factory_names = {block[1] for block in _FACTORY.finditer(made)}
    others = set(re.findall(r"at::Tensor (\w+)\(", made)) - factory_names
    if others or not {"empty", "zeros", "from_blob", "tensor"} <= factory_names:
        return None, set()
    named |= factory_names & words
    blocks = [block[0] for block in _FACTORY.finditer(made) if block[1] in words]
    headers = [header for header, asking in _BY_WORD.items() if words & set(asking)]
    core = "".join([
        _OPEN, _PER_OPERATOR, *_includes([*_ALWAYS, *headers, *_operators(torch_include, named)]),
        "namespace torch {\nnamespace slim {\n",
        # As torch::autograd::make_variable does for a tensor that nobody else holds.
        "inline at::Tensor made(at::Tensor tensor, bool requires_grad) {\n"
        "  if (requires_grad) tensor.set_requires_grad(true);\n  return tensor;\n}\n}\n"
        "using Deleter = std::function<void(void*)>;\nusing at::MemoryFormat;\n",
        *(block.replace("autograd::make_variable(", "slim::made(") for block in blocks),
        # One that is only missing would let torch:: fall through to at::, where another header has it, and that one forgets
        # requires_grad; a macro may piece its name together.
        *(f"template <typename... T> at::Tensor {name}(T&&...) = delete;\n" for name in sorted(factory_names - words)),
        "}\n",
        names[0],
        "namespace torch {\nusing NoGradGuard = at::NoGradGuard;\nusing AutoGradMode = at::AutoGradMode;\n}\n",
    ])
    return core, named


def _cuda_context(torch_include: Path) -> dict[str, str]:
    """``ATen/cuda/CUDAContext.h`` without cuBLAS, cuSPARSE and cuSOLVER, which need not even be installed."""
    light = torch_include / "ATen/cuda/CUDAContextLight.h"
    if not light.is_file():
        return {}
    kept = [line for line in light.read_text(encoding="utf-8").splitlines() if not _LIBRARY_LINE.search(line)]
    return {
        "ATen/cuda/CUDAContextLight.h": "\n".join(["#pragma GCC system_header", *kept, ""]),
        "ATen/cuda/Exceptions.h": f"{_OPEN}#include <c10/util/Exception.h>\n#include <c10/cuda/CUDAException.h>\n"
        "#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)\n",
        "ATen/cuda/CUDAContext.h": f"{_OPEN}#include <ATen/cuda/CUDAContextLight.h>\n"
        "#include <c10/cuda/CUDAStream.h>\n#include <c10/util/Logging.h>\n#include <ATen/cuda/Exceptions.h>\n",
    }


def _includes(headers: Iterable[str]) -> list[str]:
    return [f"#include <{header}>\n" for header in headers]


def _ask_of_pytorchs(texts: Iterable[str]) -> bool:
    """Whether a condition in one of `texts` hangs on a macro that PyTorch's headers may define, or on one for that."""
    joined = _CONTINUED.sub(" ", "\n".join(texts))
    asked, defined = _QUESTION.findall(joined), _DEFINITION.findall(joined)
    aliases = {name for name, body in defined if _THEIRS.search(body)}
    return any(_THEIRS.search(each) or not aliases.isdisjoint(_ASKED_WORD.findall(each)) for each in asked)


def _may_ask_of_pythons(texts: Sequence[str]) -> bool:
    """Whether a condition in one of `texts` may hang on a macro of Python.h, or of a system's header that comes with
    it. What the texts define themselves is theirs, unless Python defines it too.
    """
    joined = _CONTINUED.sub(" ", "\n".join(texts))
    words = {word for line in _QUESTION.findall(joined) for word in _ASKED_WORD.findall(line)}
    asked = {word for word in words if not _ANSWERED.fullmatch(word)}
    bodies = dict(_DEFINITION.findall(joined))
    aliased = {word for name in asked & bodies.keys() for word in _ASKED_WORD.findall(bodies[name])}
    return bool(asked) and (not asked <= bodies.keys() or not _pythons().isdisjoint(asked | aliased))


@functools.cache
def _pythons() -> frozenset[str]:
    """The macros that Python's own headers define."""
    headers = Path(sysconfig.get_paths()["include"]).rglob("*.h")
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in headers)
    return frozenset(name for text in texts for name, _ in _DEFINITION.findall(text))
