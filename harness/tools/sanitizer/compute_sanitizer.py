"""Where compute-sanitizer is, and the command line for each of its tools."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import InputError

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
HINT = "It comes with the CUDA toolkit, or: pip install nvidia-cuda-sanitizer-api"
_PROGRAM = "compute-sanitizer"
# Python imports torch before it first calls CUDA, and the tool waits for that call.
_CONNECT_LIMIT_S = 120
_MOST_FINDINGS = 20
# Between allocations of cudaMalloc may lie nothing: what runs over the end of one would land in the next.
_PADDING_BYTES = 1024
# PyTorch's own kernels, by mangled name: checking them costs minutes and is no business of the candidate's.
_NOT_CHECKED = (
    r"^_ZN(2at|14at_cuda_detail|3c10|6caffe2|13pytorch_flash|22PyTorchMemEffAttention|10fbgemm_gpu)[0-9I]"
    r"|^fmha_cutlass[FB]_"
    r"|(^|[0-9])(cublas|cudnn|cusparse|cusolver|cufft|nvjet_|nccl|implicit_convolve_|sm[0-9]+_xmma_)"
    r"|(^|[0-9])(maxwell|volta|turing|ampere|hopper|blackwell)_[a-z0-9_]*(gemm|cudnn)"
    r"|(^|[0-9])cutlass(_[0-9]+_|[0-9]+x_|__[0-9]+x|_cudnn|_tensorop_)"
)


def find_tool() -> str | None:
    """The program, from the PATH, the CUDA toolkit or the wheel that brings it; None where there is none."""
    places = [os.environ.get("PATH", os.defpath)]
    places += [str(Path(os.environ[name], "bin")) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places.append("/usr/local/cuda/bin")
    places += [str(path) for entry in sys.path for path in sorted(Path(entry or ".", "nvidia").glob("*/bin"))]
    return shutil.which(_PROGRAM, path=os.pathsep.join(places))


def require_tool(device: str) -> str:
    """The program, for a run with --sanitize on `device` ("cpu" or another). Raises InputError with what to do."""
    if device == "cpu":
        raise InputError("--sanitize watches CUDA kernels, and a CPU runs none", hint="Leave it out, or name a GPU")
    program = find_tool()
    if program is None:
        raise InputError(f"--sanitize needs {_PROGRAM}, and there is none here", hint=f"{HINT}. Or leave it out")
    return program


def command(program: str, tool: str, log: Path, target: Sequence[str]) -> list[str]:
    """The words that run `target` under `tool` with the report in `log`; every option is known since CUDA 12.6."""
    words = [
        program, "--tool", tool, "--log-file", str(log), "--target-processes", "application-only",
        "--launch-timeout", str(_CONNECT_LIMIT_S), "--show-backtrace", "device", "--print-limit", str(_MOST_FINDINGS),
        "--destroy-on-device-error", "kernel",
    ]
    if tool == "memcheck":
        # PyTorch asks the driver for much that it can do without; its refusals are not the candidate's errors.
        words += ["--padding", str(_PADDING_BYTES), "--report-api-errors", "no"]
    if tool == "racecheck":
        words += ["--racecheck-report", "analysis", "--racecheck-detect-level", "error"]
    if tool != "initcheck":
        # Up to 2026.3, memory written by a kernel that is not checked counts as never written: initcheck sees all.
        words += ["--kernel-name-exclude", f"regex={_NOT_CHECKED}"]
    return [*words, *target]
