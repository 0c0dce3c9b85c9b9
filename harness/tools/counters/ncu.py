"""Where ncu is, and the command line by which it watches one call of a candidate."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness.model.errors import NothingToRun
from harness.tools.counters.metrics import ASKED_FOR

HINT = "It comes with the CUDA toolkit (package cuda-nsight-compute), or from developer.nvidia.com/nsight-compute"
_MOST_KERNELS = 24
_PLACES = ("/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/NVIDIA-Nsight-Compute*")


def find_tool() -> str | None:
    """The program, from the PATH, the CUDA toolkit or where its installer puts it; None where there is none."""
    places = [os.environ.get("PATH", os.defpath)]
    places += [str(Path(os.environ[name], "bin")) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places += [each for pattern in _PLACES for each in sorted(glob.glob(pattern), reverse=True)]
    return shutil.which("ncu", path=os.pathsep.join(places))


def require_tool() -> str:
    """The program. Raises NothingToRun with where to get it."""
    program = find_tool()
    if program is None:
        raise NothingToRun(f"profile reads the counters with Nsight Compute (ncu), and there is none here. {HINT}")
    return program


def command(program: str, log: Path, target: Sequence[str]) -> list[str]:
    """The words that run `target` under ncu, with a CSV of raw values in base units in `log`. Caches are flushed before
    each pass, so that what is counted is a cold call; the clocks are left alone.
    """
    return [
        program, "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log), "--config-file", "off",
        "--clock-control", "none", "--cache-control", "all", "--profile-from-start", "off",
        "--target-processes", "application-only", "--launch-count", str(_MOST_KERNELS),
        "--print-kernel-base", "demangled", "--metrics", ",".join(ASKED_FOR), *target,
    ]
