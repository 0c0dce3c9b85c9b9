"""Which device a run judges on, and the lock that keeps two runs from timing on it at once."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import InputError, NothingToRun

if TYPE_CHECKING:
    from filelock import BaseFileLock

    from harness.device.bench import Bench


def check_device_name(name: str) -> None:
    """Raise InputError unless `name` is auto, cpu or cuda:N; needs no torch."""
    if name not in ("auto", "cpu", "cuda") and not re.fullmatch(r"cuda:\d+", name):
        raise InputError(f"--device {name} is no device", hint="Type --device auto, --device cuda:0 or --device cpu")


def require_torch() -> None:
    """Raise NothingToRun where there is no PyTorch to judge with; does not import it."""
    if importlib.util.find_spec("torch") is None:
        raise NothingToRun(
            f"PyTorch is not installed for {sys.executable}. Activate the environment that has it "
            "(. .venv/bin/activate), or type python run.py doctor"
        )


def device_kind(name: str) -> str:
    """"cuda" or "cpu" for `auto`, `cpu` or `cuda:N`."""
    from harness.device.cuda import cuda_is_there

    return "cpu" if name == "cpu" or (name == "auto" and not cuda_is_there()) else "cuda"


def open_bench(name: str) -> Bench:
    """The bench for `auto`, `cpu` or `cuda:N`. Raises NothingToRun when there is no such GPU."""
    import torch

    from harness.device.cuda import cuda_is_there

    if device_kind(name) == "cpu":
        from harness.device.cpu import CpuBench

        return CpuBench()
    if not cuda_is_there():
        raise NothingToRun(f"--device {name}: {why_no_gpu()}. `python run.py doctor` says more; --device cpu runs here")
    index = int(name.partition(":")[2] or 0)
    if index >= torch.cuda.device_count():
        raise NothingToRun(
            f"--device {name}: this machine shows {torch.cuda.device_count()} GPU(s) to PyTorch, counted from cuda:0"
        )
    from harness.device.cuda import CudaBench

    return CudaBench(index)


def why_no_gpu() -> str:
    """One clause on why PyTorch has no GPU here."""
    import torch

    if torch.version.cuda is None:
        return f"this PyTorch ({torch.__version__}) is built without CUDA"
    return "PyTorch finds no usable NVIDIA GPU"


def device_lock(uuid: str | None) -> BaseFileLock:
    """A lock by GPU UUID (or for the CPU), shared by all runs of this machine."""
    from filelock import FileLock

    folder = Path(tempfile.gettempdir()) / "kernel-referee-locks"
    folder.mkdir(exist_ok=True)
    with contextlib.suppress(PermissionError):
        folder.chmod(0o1777)  # the umask would keep another user of this machine from locking
    return FileLock(folder / f"{uuid or 'cpu'}.lock", mode=0o666)
