"""The C++ sources of a call, outside the build: what the host compiler would refuse in them, where the CUDA half is
only compiled, and what the preprocessor makes of them.

Beside CUDA they are most often a declaration for each function that is bound, and nothing else; that is told without a
compiler. All else is read by one, as far as its meaning goes and with no code made of it.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.utils.cpp_extension as cpp_extension

from harness.build import source_suffixes
from harness.build.certain_errors import KEYWORDS
from harness.build.dependencies import files_of_rule
from harness.build.toolchain import find_host_compiler

# Two capitals and more may be a macro, and no name of a function's own has an underscore at either end.
_NAME = rf"(?!(?:{'|'.join(sorted(KEYWORDS))}|[A-Z_0-9]{{2,}})\b)[A-Za-z]\w*"
# A name without an underscore may be the C library's, which has it for several types (tanh, div); so may one with _r.
_FUNCTION = rf"(?=\w*[A-Za-z0-9]_)(?!\w*_r\b){_NAME}"
_TENSOR = r"(?:torch|at)::Tensor"
_NUMBER = r"(?:int|unsigned|long|int64_t|int32_t|size_t|float|double|bool)"
_OPTIONAL = rf"(?:std|c10|torch|at)::optional\s*<\s*(?:{_TENSOR}|{_NUMBER})\s*>"
_SEVERAL = rf"std::vector\s*<\s*(?:{_TENSOR}|{_NUMBER})\s*>|std::tuple\s*<\s*{_TENSOR}(?:\s*,\s*{_TENSOR})*\s*>"
_TYPE = rf"(?:{_TENSOR}|{_NUMBER}|{_OPTIONAL}|{_SEVERAL}|std::string)"
_PARAMETER = rf"(?:(?:const\s+{_TYPE}|{_TENSOR})\s*&\s*|(?:const\s+)?{_TYPE}\s+)({_NAME})"
_DECLARATION = re.compile(rf"\s*(?:void|{_TYPE})\s+({_FUNCTION})\s*\(\s*({_PARAMETER}(?:\s*,\s*{_PARAMETER})*)?\s*\)\s*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADER = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*<(?:torch/(?:extension|types)\.h|string|tuple|vector|optional)>[ \t]*$", re.MULTILINE
)
_PLAIN = re.compile(r"[\w .,:()\[\]-]*")
# Flags that no declaration hangs on.
_HARMLESS = re.compile(r"-O[0-3s]?|-Ofast|-std=c\+\+(?:17|20)|-f(?:fast-math|PIC|openmp)|-march=native|-g|-w|-DNDEBUG")
_CUDAS_INCLUDE = re.compile(r'^#\$ INCLUDES="(.*?)"', re.MULTILINE)


@dataclass(frozen=True)
class Looked:
    """Whether the half is as it should be, what the compiler said, and the files that it read."""

    passed: bool = True
    log: str = ""
    read: frozenset[str] = frozenset()


def look(
    kind: str, arguments: Mapping[str, Any], place: Path, nvcc: str, standard: str, last: Sequence[Path]
) -> Looked:
    """Look at the C++ half of a call, below `place`, with the headers as torch has them found, those in `last` last."""
    compiler = find_host_compiler()
    if compiler is None or (kind == "load_inline" and _is_declarations(arguments)):
        return Looked()
    command = [compiler, *_flags_of_torch(arguments, nvcc, standard, last), "-fsyntax-only", "-MD", "-MF"]
    output, read = "", set()
    for index, file in enumerate(_files(kind, arguments, place)):
        rule = place / f"cpp-{index}.d"
        ran = subprocess.run(
            [*command, str(rule), file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=place, check=False
        )
        output += ran.stdout.decode(errors="replace")
        if ran.returncode != 0:
            return Looked(False, output)
        read |= files_of_rule(rule.read_text(errors="replace")) if rule.is_file() else set()
    return Looked(True, output, frozenset(read))


def preprocessed(
    kind: str, arguments: Mapping[str, Any], place: Path, nvcc: str | None, standard: str, last: Sequence[Path]
) -> dict[str, str]:
    """What the host compiler is given of each C++ source of a call, by the file's name; empty where that fails. That of
    `load_inline` is written below `place`, and `last` is as for `look`.
    """
    compiler, text_by_file = find_host_compiler(), {}
    for file in _files(kind, arguments, place) if compiler is not None else ():
        command = [compiler, *_flags_of_torch(arguments, nvcc, standard, last), "-E", file]
        ran = subprocess.run(command, capture_output=True, cwd=place, check=False)
        if ran.returncode != 0:
            return {}
        text_by_file[file] = ran.stdout.decode(errors="replace")
    return text_by_file


def _flags_of_torch(arguments: Mapping[str, Any], nvcc: str | None, standard: str, last: Sequence[Path]) -> list[str]:
    """The flags that torch has the host compiler started with, and the folders in `last` behind all others."""
    flags = _flags(arguments)
    own = [] if any(flag.startswith(("-std", "--std")) for flag in flags) else [standard]
    folders = [os.path.abspath(folder) for folder in arguments.get("extra_include_paths") or []]
    systems = [*cpp_extension.include_paths(), sysconfig.get_paths()["include"], *(_cuda_folders(nvcc) if nvcc else ())]
    return [
        "-DTORCH_API_INCLUDE_EXTENSION_H", f"-DTORCH_EXTENSION_NAME={arguments.get('name')}",
        *(f"-I{folder}" for folder in folders), *(word for each in systems for word in ("-isystem", str(each))), *own,
        *flags, *(word for each in last for word in ("-idirafter", str(each))),
    ]


def _flags(arguments: Mapping[str, Any]) -> list[str]:
    """As a shell parts them, to which torch gives them."""
    return [word for each in arguments.get("extra_cflags") or [] for word in shlex.split(str(each))]


@functools.lru_cache(maxsize=4)
def _cuda_folders(nvcc: str) -> tuple[str, ...]:
    """Where nvcc itself looks for CUDA's headers; it may be a script that lies elsewhere."""
    ran = subprocess.run([nvcc, "--dryrun", "-c", "x.cu"], capture_output=True, text=True, check=False)
    return tuple(
        folder for include_flags in _CUDAS_INCLUDE.findall(ran.stdout + ran.stderr)
        for word in shlex.split(include_flags) if (folder := word.removeprefix("-I"))
    )


def _files(kind: str, arguments: Mapping[str, Any], place: Path) -> list[str]:
    """The C++ files of a call of "load", or the one that `load_inline` would write."""
    if kind == "load":
        given = arguments.get("sources") or []
        sources = [given] if isinstance(given, (str, os.PathLike)) else given
        return [str(Path(each).resolve()) for each in sources if not str(each).endswith(source_suffixes.CUDA)]
    # As torch.utils.cpp_extension.load_inline writes it.
    implicit = [] if arguments.get("no_implicit_headers") else ["#include <torch/extension.h>"]
    functions, bound = _functions(arguments), []
    if functions is not None:
        wrapped = "torch::wrap_pybind_function({})" if arguments.get("with_pytorch_error_handling", True) else "{}"
        bound = [f'm.def("{name}", {wrapped.format(name)}, "{docstring}");' for name, docstring in functions.items()]
        bound = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *bound, "}"]
    path = place / "main.cpp"
    path.write_text("\n".join([*implicit, *_texts(arguments), *bound]), encoding="utf-8")
    return [str(path)]


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    given = arguments.get("cpp_sources") or []
    return [given] if isinstance(given, str) else list(given)


def _functions(arguments: Mapping[str, Any]) -> dict[str, str] | None:
    """The functions that are bound, with what is said of each; None where the call binds none itself."""
    given = arguments.get("functions")
    if given is None:
        return None
    if isinstance(given, Mapping):
        return {str(name): str(docstring) for name, docstring in given.items()}
    return {str(name): str(name) for name in ([given] if isinstance(given, str) else given)}


def _is_declarations(arguments: Mapping[str, Any]) -> bool:
    """Whether the half declares each function that is bound, once and in types known to bind, and nothing else."""
    given, functions = "\n".join(_texts(arguments)), _functions(arguments) or {}
    text = _COMMENT.sub(" ", given)
    if not text.strip() and not functions:
        return True
    *statements, rest = _HEADER.sub("", text).split(";")
    matches = [_DECLARATION.fullmatch(each) for each in statements if each.strip()]
    if rest.strip() or "\\\n" in given or not all(matches) or arguments.get("no_implicit_headers"):
        return False
    declared = [each[1] for each in matches]
    parameters = [[one[1] for one in re.finditer(_PARAMETER, each[2] or "")] for each in matches]
    is_known = functions.keys() <= set(declared) and all(map(_PLAIN.fullmatch, functions.values()))
    each_once = all(len(set(names)) == len(names) for names in (declared, *parameters))
    return is_known and each_once and all(map(_HARMLESS.fullmatch, _flags(arguments)))
