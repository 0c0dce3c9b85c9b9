"""Compiling CUDA sources to machine code and no further, for a machine without a GPU.

torch refuses to build CUDA extensions there, so nvcc is called directly on the text that `load_inline` would
write; the C++ half is not looked at.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.utils.cpp_extension as cpp_extension

from harness.build.dependencies import files_of_rule

_IMPLICIT_HEADERS = ("torch/types.h", "cuda.h", "cuda_runtime.h")
_CHOOSES_ARCHITECTURE = frozenset({
    "-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code",
})
# A header that torch generates for CUDA builds only; without it its own headers do not compile.
STAND_IN = "c10/cuda/impl/cuda_cmake_macros.h"


@dataclass(frozen=True)
class Compiled:
    """What came of compiling: the architectures it went for, what was said for each where it did not, all that was
    said, and the files that were read.
    """

    passed: tuple[str, ...]
    refused: Mapping[str, str]
    log: str
    read: frozenset[str]


def cuda_files(kind: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the CUDA sources of a call: their text for "load_inline", their paths for "load"."""
    given = arguments.get("cuda_sources" if kind == "load_inline" else "sources") or []
    files = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    return [str(file) for file in files if kind == "load_inline" or str(file).endswith((".cu", ".cuh"))]


def compile_cuda(
    kind: str, arguments: Mapping[str, Any], place: Path, nvcc: str, sms: Sequence[str]
) -> Compiled:
    """Compile the CUDA sources of a call below `place` for each of `sms` (like "sm_90a"), one after the other."""
    files = cuda_files(kind, arguments)
    if kind == "load_inline":
        headers = [f"#include <{name}>" for name in _IMPLICIT_HEADERS]
        path = place / "cuda.cu"
        path.write_text("\n".join(files if arguments.get("no_implicit_headers") else [*headers, *files]))
        files = [str(path)]
    stand_in = place / "stand_in"
    (stand_in / STAND_IN).parent.mkdir(parents=True, exist_ok=True)
    (stand_in / STAND_IN).write_text("#pragma once\n")
    log, refused, read = "", {}, set()
    for sm in sms:
        said = ""
        for index, file in enumerate(file for file in files if not file.endswith(".cuh")):
            made = place / f"{index}.{sm}"
            command = [nvcc, *_flags(arguments, sm, stand_in), "-MD", "-MF", f"{made}.d", "-o", f"{made}.cubin", file]
            ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=place, check=False)
            said += ran.stdout.decode(errors="replace")
            if ran.returncode != 0:
                refused[sm] = said
            elif Path(f"{made}.d").is_file():
                read |= files_of_rule(Path(f"{made}.d").read_text(errors="replace"))
        log += said
    return Compiled(tuple(sm for sm in sms if sm not in refused), refused, log, frozenset(read))


def _flags(arguments: Mapping[str, Any], sm: str, stand_in: Path) -> list[str]:
    include = [*(arguments.get("extra_include_paths") or []), *cpp_extension.include_paths()]
    include.append(sysconfig.get_paths()["include"])
    extra = without_architectures(arguments.get("extra_cuda_cflags") or [])
    standard = [] if any(flag.startswith(("-std", "--std")) for flag in extra) else [_torch_standard()]
    return [
        "-cubin", f"-gencode=arch=compute_{sm[3:]},code={sm}", *standard,
        *cpp_extension.COMMON_NVCC_FLAGS, "-DTORCH_API_INCLUDE_EXTENSION_H",
        f"-DTORCH_EXTENSION_NAME={arguments.get('name')}", *extra,
        f"-I{stand_in}", *(f"-I{folder}" for folder in include),
    ]


def _torch_standard() -> str:
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
