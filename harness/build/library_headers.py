"""Headers of cuBLAS, cuSPARSE and cuSOLVER for CUDA that is compiled and never linked.

PyTorch's own ``ATen/cuda/CUDAContext.h`` includes all three for a handle of each, and an nvcc without a toolkit brings
none. The real ones are looked for in the wheels that are installed. For a library that a candidate does not name there
is a stand-in with those handles, which the compilers find last; of one that it names nothing is made up.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.build.diagnostics import diagnostics

# As the libraries' own do, for a candidate may live on what they include.
_INCLUDES = "".join(f"#include <{name}>\n" for name in (
    "inttypes.h", "stddef.h", "stdint.h", "stdio.h", "cuComplex.h", "cuda_bf16.h", "cuda_fp16.h", "cuda_runtime_api.h",
    "library_types.h",
))
_BLAS = "typedef struct cublasContext* cublasHandle_t;\nenum cublasStatus_t : unsigned int;\n"
_BLAS_LT = "#include <cublas_v2.h>\ntypedef struct cublasLtContext* cublasLtHandle_t;\n"
_SPARSE = "typedef struct cusparseContext* cusparseHandle_t;\nenum cusparseStatus_t : unsigned int;\n"
_SOLVER = "enum cusolverStatus_t : unsigned int;\n"
_SOLVER_DENSE = (
    "#include <cublas_v2.h>\n#include <cusolver_common.h>\ntypedef struct cusolverDnContext* cusolverDnHandle_t;\n"
)
# By what names a library, in a source or in an error: cublasSgemm, TORCH_CUDABLAS_CHECK, getCurrentCUDABlasHandle.
_DECLARED = {
    "blas": {"cublas_v2.h": _BLAS, "cublasLt.h": _BLAS_LT}, "sparse": {"cusparse.h": _SPARSE},
    "solver": {"cusolver_common.h": _SOLVER, "cusolverDn.h": _SOLVER_DENSE},
}


@dataclass(frozen=True)
class StandIns:
    """The libraries that a source does not name, and the folder where a header of each was written."""

    libraries: tuple[str, ...]
    folder: Path

    def may_lack_for(self, log: str) -> bool:
        """Whether an error in `log` may be for want of something that a real header has."""
        named = re.compile(_pattern(self.libraries), re.IGNORECASE)
        errors = (f"{each.file} {each.text} {each.quoted}" for each in diagnostics(log) if each.kind == "error")
        return bool(self.libraries) and any(map(named.search, errors))


def write(folder: Path, texts: Iterable[str]) -> StandIns:
    """Write a stand-in for each header of a library that none of `texts` names below `folder`. Raises OSError."""
    joined = "\n".join(texts)
    unnamed = tuple(each for each in _DECLARED if not re.search(_pattern([each]), joined, re.IGNORECASE))
    folder.mkdir(parents=True, exist_ok=True)
    for library in unnamed:
        for name, declared in _DECLARED[library].items():
            (folder / name).write_text(f"#pragma once\n{_INCLUDES}{declared}", encoding="utf-8")
    return StandIns(unnamed, folder)


def flags(stand_ins: StandIns | None) -> list[str]:
    """For nvcc: the wheels' folders behind its own, and the stand-ins behind these."""
    # nvcc parts what it hands on at commas, and hands it to a shell.
    quoted = [shlex.quote(str(folder)) for folder in folders(stand_ins)]
    return [f"-Xcompiler=-idirafter,{folder}" for folder in quoted if "," not in folder]


def folders(stand_ins: StandIns | None) -> list[Path]:
    """The wheels' folders, and behind them that of the stand-ins."""
    return [*wheel_folders(sys.path), *([stand_ins.folder] if stand_ins else [])]


def wheel_folders(entries: Sequence[str]) -> list[Path]:
    """Where below these entries of Python's path wheels of NVIDIA's keep headers of CUDA's libraries."""
    folders = [include for entry in entries for include in sorted(Path(entry or ".", "nvidia").glob("*/include"))]
    return [folder for folder in dict.fromkeys(folders) if any(folder.glob("cu[brfs]*.h"))]


def _pattern(libraries: Iterable[str]) -> str:
    return "|".join(rf"cu(?:da)?{library}" for library in libraries) or r"(?!)"
