"""CUDA launchers of the corpus compile with the stand-in for PyTorch's headers, to the machine code of the stock ones.

The corpus in tests/fixtures/launchers is written as language models write launchers for KernelBench.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from harness.build import stand_in_headers
from harness.build.toolchain import find_toolchain
from harness.model.verdict import Status

pytest.importorskip("torch")
pytest.importorskip("setuptools")
from torch.utils import cpp_extension

from harness.build import compile_only

LAUNCHERS = Path(__file__).resolve().parents[1] / "fixtures" / "launchers"
TORCH_INCLUDE = Path(cpp_extension.include_paths()[0])
CUDA = sorted(path.stem for path in LAUNCHERS.glob("*.py") if not path.stem.startswith(("cpp_", "needs_stock")))
SOURCE = "#include <torch/extension.h>\n"

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow, pytest.mark.skipif(find_toolchain(None).nvcc_path is None, reason="there is no nvcc"),
]


@pytest.mark.parametrize("name", CUDA)
def test_a_cuda_launcher_compiles_with_it(name, build_pool):
    (build,) = build_pool.build(build_pool.write(name, (LAUNCHERS / f"{name}.py").read_text()))
    assert build.verdict.status is Status.COMPILED, build.verdict.reason
    assert build.headers == "slim", build.log[-2000:]
    assert build.kernels


def sources_of(name):
    """The CUDA and the C++ text of a launcher."""
    values = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse((LAUNCHERS / f"{name}.py").read_text()).body
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    return values["CUDA_SOURCE"], values.get("CPP_SOURCE", "")


def together(names):
    """The launchers `names` as one text, each in a namespace, and its macros no longer than it."""
    includes, parts = [], []
    for name in names:
        lines = sources_of(name)[0].splitlines()
        includes += [line for line in lines if line.startswith("#include") and line not in includes]
        own = [line for line in lines if not line.startswith("#include")]
        macros = [line.split()[1].partition("(")[0] for line in own if line.startswith("#define")]
        parts += [f"namespace {name} {{", *own, "}", *(f"#undef {macro}" for macro in macros)]
    return "\n".join([*includes, *parts, ""])


def test_the_machine_code_of_the_whole_corpus_is_that_of_a_build_with_the_stock_headers(tmp_path):
    """As one source, since the stock headers take nvcc far longer to read than all of the launchers do."""
    names = [name for name in CUDA if name != "bound_in_cuda"]  # a module cannot be in a namespace
    cuda, cpp, made = together(names), [sources_of(name)[1] for name in names], []
    for headers in ("slim", "stock"):
        place = tmp_path / "place"  # the same for both: a kernel's symbol may hold the name of its file
        place.mkdir()
        arguments = {"name": "together", "cuda_sources": [cuda]}
        if headers == "slim":
            assert stand_in_headers.write(tmp_path / "slim", TORCH_INCLUDE, [SOURCE, *cpp], [cuda])
            arguments["extra_include_paths"] = [str(tmp_path / "slim")]
        came = compile_only.compile_cuda("load_inline", arguments, place, find_toolchain(None).nvcc_path, ["sm_90a"])
        assert came.passed, came.log
        made.append((place / "0.sm_90a.cubin").read_bytes())
        shutil.rmtree(place)
    assert made[0] == made[1]
    assert len(names) > 8 and all(name.encode() in made[0] for name in names)
