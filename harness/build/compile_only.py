"""Compiling CUDA sources to machine code and no further, for a machine without a GPU, where torch refuses to build:
nvcc is called directly on the text that `load_inline` would write. Of the C++ half `cpp_half` says what the host
compiler would; how the two are linked is not looked at.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch.utils.cpp_extension as cpp_extension

from harness.build import cpp_half, library_headers, source_suffixes
from harness.build.dependencies import files_of_rule

_IMPLICIT_HEADERS = ("torch/types.h", "cuda.h", "cuda_runtime.h")
_CHOOSES_ARCHITECTURE = frozenset({"-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code"})
# A header that torch generates for CUDA builds only; without it its own headers do not compile.
STAND_IN = "c10/cuda/impl/cuda_cmake_macros.h"
STAND_INS = "stand_in"


@dataclass(frozen=True)
class Compiled:
    """What came of compiling: the architectures it went for, what was said for each other, all said, the files read."""

    passed: tuple[str, ...]
    refused: Mapping[str, str]
    log: str
    read: frozenset[str]


def cuda_files(kind: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the CUDA sources of a call: their text for "load_inline", their paths for "load"."""
    given = arguments.get("cuda_sources" if kind == "load_inline" else "sources") or []
    files = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    return [str(file) for file in files if kind == "load_inline" or str(file).endswith(source_suffixes.CUDA)]


def compile_cuda(
    kind: str, arguments: Mapping[str, Any], place: Path, nvcc: str, sms: Sequence[str], texts: Sequence[str] = (),
    at_once: int = 1,
) -> Compiled:
    """Compile the CUDA sources of a call below `place` for each of `sms` ("sm_90a"), `at_once` at a time, if nothing is
    wrong with its C++ half. Its sources and its own headers, the `texts`, say which of CUDA's libraries it names.
    """
    files, stand_ins = _fed(kind, arguments, place, texts)
    last = [place / STAND_INS, *library_headers.folders(stand_ins)]
    cpp = cpp_half.look(kind, arguments, place, nvcc, torch_standard(), last)
    if not cpp.passed:
        return Compiled((), dict.fromkeys(sms, cpp.log), cpp.log, cpp.read)
    came = _compiled(files, arguments, place, nvcc, sms, at_once, stand_ins)
    if any(map(stand_ins.may_lack_for, came.refused.values())):
        # Without them the compiler says which header is missing; or says the same again, where none is.
        came = _compiled(files, arguments, place, nvcc, sms, at_once, None)
    return replace(came, log=cpp.log + came.log, read=cpp.read | came.read)


def preprocessed(
    kind: str, arguments: Mapping[str, Any], place: Path, nvcc: str, sm: str, texts: Sequence[str] = ()
) -> dict[str, str]:
    """What the device's compiler is given of each CUDA source, by the file's name; empty where that fails."""
    files, stand_ins = _fed(kind, arguments, place, texts)
    text_by_file = {}
    for index, file in enumerate(files):
        made = place / f"{index}.{sm}.ii"
        flags = [flag for flag in _flags(arguments, sm, place, stand_ins) if flag != "-cubin"]
        ran = subprocess.run([nvcc, *flags, "-E", "-o", str(made), file], capture_output=True, cwd=place, check=False)
        if ran.returncode != 0:
            return {}
        text_by_file[file] = made.read_text(encoding="utf-8", errors="replace")
        made.unlink()
    return text_by_file


def _fed(
    kind: str, arguments: Mapping[str, Any], place: Path, texts: Sequence[str]
) -> tuple[list[str], library_headers.StandIns]:
    """The files to compile, that of `load_inline` written below `place`, and stand-ins for libraries none names."""
    files = cuda_files(kind, arguments)
    if kind == "load_inline":
        headers = [f"#include <{name}>" for name in _IMPLICIT_HEADERS]
        path = place / "cuda.cu"
        path.write_text("\n".join(files if arguments.get("no_implicit_headers") else [*headers, *files]))
        files = [str(path)]
    stand_in = place / STAND_INS / STAND_IN
    stand_in.parent.mkdir(parents=True, exist_ok=True)
    stand_in.write_text("#pragma once\n")
    files = [file for file in files if not file.endswith(".cuh")]
    fed = [Path(file).read_text(encoding="utf-8", errors="replace") for file in files if Path(file).is_file()]
    return files, library_headers.write(place / "libraries", [*texts, *fed])


def _compiled(
    files: Sequence[str], arguments: Mapping[str, Any], place: Path, nvcc: str, sms: Sequence[str], at_once: int,
    stand_ins: library_headers.StandIns | None,
) -> Compiled:
    def compile_one(sm: str, index: int) -> tuple[int, str, frozenset[str]]:
        made = place / f"{index}.{sm}"
        flags = _flags(arguments, sm, place, stand_ins)
        command = [nvcc, *flags, "-MD", "-MF", f"{made}.d", "-o", f"{made}.cubin", files[index]]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=place, check=False)
        rule = Path(f"{made}.d")
        read = files_of_rule(rule.read_text(errors="replace")) if ran.returncode == 0 and rule.is_file() else ()
        return ran.returncode, ran.stdout.decode(errors="replace"), frozenset(read)

    each = [(sm, index) for sm in sms for index in range(len(files))]
    with ThreadPoolExecutor(max(1, at_once)) as pool:
        came = list(zip(each, pool.map(lambda one: compile_one(*one), each)))
    output_by_sm = {sm: "".join(text for (for_sm, _), (_, text, _) in came if for_sm == sm) for sm in sms}
    refused = {sm: output_by_sm[sm] for (sm, _), (code, _, _) in came if code != 0}
    read = frozenset[str]().union(*(names for _, (_, _, names) in came))
    return Compiled(tuple(sm for sm in sms if sm not in refused), refused, "".join(output_by_sm.values()), read)


def _flags(arguments: Mapping[str, Any], sm: str, place: Path, stand_ins: library_headers.StandIns | None) -> list[str]:
    given, python_include = arguments.get("extra_include_paths") or [], sysconfig.get_paths()["include"]
    include = [place / STAND_INS, *given, *cpp_extension.include_paths(), python_include]
    extra = without_architectures(arguments.get("extra_cuda_cflags") or [])
    standard = [] if any(flag.startswith(("-std", "--std")) for flag in extra) else [torch_standard()]
    return [
        "-cubin", f"-gencode=arch=compute_{sm[3:]},code={sm}", *standard, *cpp_extension.COMMON_NVCC_FLAGS,
        "-DTORCH_API_INCLUDE_EXTENSION_H", f"-DTORCH_EXTENSION_NAME={arguments.get('name')}", *extra,
        *(f"-I{folder}" for folder in include), *library_headers.flags(stand_ins),
    ]


def torch_standard() -> str:
    """The C++ standard that this torch's headers need."""
    major, minor = (int(part) for part in cpp_extension.torch.__version__.split(".")[:2])
    return "-std=c++20" if (major, minor) >= (2, 12) else "-std=c++17"


def without_architectures(flags: Sequence[str]) -> list[str]:
    """Return `flags` without those that choose an architecture: machine code is for one, and we name it."""
    kept, skip = [], False
    for flag in map(str, flags):
        if skip:
            skip = False
        elif flag in _CHOOSES_ARCHITECTURE:
            skip = True
        elif flag.partition("=")[0] not in _CHOOSES_ARCHITECTURE:
            kept.append(flag)
    return kept
