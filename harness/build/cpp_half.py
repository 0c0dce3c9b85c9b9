"""The C++ half of a candidate whose CUDA half is only compiled: what the host compiler would refuse in it.

It is most often a declaration for each function that is bound, and nothing else; that is told without a compiler. All
else is read by one, as far as its meaning goes and with no code made of it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.build.dependencies import files_of_rule
from harness.build.environment import find_host_compiler

_KEYWORDS = (
    "auto|bool|break|case|catch|char|class|const|continue|default|delete|do|double|else|enum|explicit|extern|false|float|for"
    "|friend|goto|if|inline|int|long|namespace|new|operator|private|protected|public|register|return|short|signed|sizeof"
    "|static|struct|switch|template|this|throw|true|try|typedef|typename|union|unsigned|using|virtual|void|volatile|while"
)
_NAME = rf"(?!(?:{_KEYWORDS})\b)[A-Za-z_]\w*"
_TENSOR = r"(?:torch|at)::Tensor"
_NUMBER = r"(?:int|unsigned|long|int64_t|int32_t|size_t|float|double|bool)"
_OPTIONAL = rf"(?:std|c10|torch|at)::optional\s*<\s*(?:{_TENSOR}|{_NUMBER})\s*>"
_SEVERAL = rf"std::vector\s*<\s*(?:{_TENSOR}|{_NUMBER})\s*>|std::tuple\s*<\s*{_TENSOR}(?:\s*,\s*{_TENSOR})*\s*>"
_TYPE = rf"(?:{_TENSOR}|{_NUMBER}|{_OPTIONAL}|{_SEVERAL}|std::string)"
_GIVEN = rf"(?:(?:const\s+{_TYPE}|{_TENSOR})\s*&\s*|(?:const\s+)?{_TYPE}\s+)"
_PARAMETER = rf"{_GIVEN}{_NAME}(?:\s*=\s*(?:-?[\d.]+f?|true|false))?"
_DECLARATION = re.compile(rf"\s*(?:void|{_TYPE})\s+({_NAME})\s*\(\s*(?:{_PARAMETER}(?:\s*,\s*{_PARAMETER})*)?\s*\)\s*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEADER = re.compile(
    r"^[ \t]*#[ \t]*include[ \t]*<(?:torch/(?:extension|types)\.h|string|tuple|vector|optional)>[ \t]*$", re.MULTILINE
)
_PLAIN = re.compile(r"[\w .,:()\[\]-]*")


@dataclass(frozen=True)
class Looked:
    """Whether the half is as it should be, what the compiler said, and the files that it read."""

    passed: bool = True
    log: str = ""
    read: frozenset[str] = frozenset()


def look(
    kind: str, arguments: Mapping[str, Any], place: Path, nvcc: str, standard: str, include: Sequence[str]
) -> Looked:
    """Look at the C++ half of a call, below `place`, where `include` are flags that say where headers are; those of CUDA
    are where nvcc knows.
    """
    if find_host_compiler() is None or (kind == "load_inline" and _is_declarations(arguments)):
        return Looked()
    said, read = "", set()
    for index, file in enumerate(_files(kind, arguments, place)):
        rule = place / f"cpp-{index}.d"
        flags = [flag for each in arguments.get("extra_cflags") or [] for flag in ("-Xcompiler", str(each))]
        own = [] if any("-std" in flag for flag in flags) else [standard]
        folders = [*(arguments.get("extra_include_paths") or []), sysconfig.get_paths()["include"]]
        ran = subprocess.run(
            [nvcc, "-c", *own, "-Xcompiler", "-fsyntax-only", "-DTORCH_API_INCLUDE_EXTENSION_H",
             f"-DTORCH_EXTENSION_NAME={arguments.get('name')}", *flags, *(f"-I{folder}" for folder in folders), *include,
             "-MD", "-MF", str(rule), "-o", str(place / f"cpp-{index}.o"), file],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=place, check=False,
        )
        said += ran.stdout.decode(errors="replace")
        if ran.returncode != 0:
            return Looked(False, said)
        read |= files_of_rule(rule.read_text(errors="replace")) if rule.is_file() else set()
    return Looked(True, said, frozenset(read))


def _files(kind: str, arguments: Mapping[str, Any], place: Path) -> list[str]:
    """The C++ files of a call of "load", or the one that `load_inline` would write."""
    if kind == "load":
        given = arguments.get("sources") or []
        sources = [given] if isinstance(given, (str, os.PathLike)) else given
        return [str(Path(each).resolve()) for each in sources if not str(each).endswith((".cu", ".cuh"))]
    # As torch.utils.cpp_extension.load_inline writes it.
    implicit = [] if arguments.get("no_implicit_headers") else ["#include <torch/extension.h>"]
    functions, bound = _functions(arguments), []
    if functions is not None:
        wrapped = "torch::wrap_pybind_function({})" if arguments.get("with_pytorch_error_handling", True) else "{}"
        bound = [f'm.def("{name}", {wrapped.format(name)}, "{said}");' for name, said in functions.items()]
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
        return {str(name): str(said) for name, said in given.items()}
    return {str(name): str(name) for name in ([given] if isinstance(given, str) else given)}


def _is_declarations(arguments: Mapping[str, Any]) -> bool:
    """Whether the half declares each function that is bound, once and in types that are known to bind, and nothing else.
    """
    text, functions = _COMMENT.sub(" ", "\n".join(_texts(arguments))), _functions(arguments) or {}
    if not text.strip() and not functions:
        return True
    text = _HEADER.sub("", text)
    *statements, rest = text.split(";")
    found = [_DECLARATION.fullmatch(each) for each in statements if each.strip()]
    if rest.strip() or not all(found) or arguments.get("no_implicit_headers"):
        return False
    declared = [each[1] for each in found]
    return (
        len(set(declared)) == len(declared)
        and functions.keys() <= set(declared) and all(map(_PLAIN.fullmatch, functions.values()))
    )
