"""Which device a run judges on, and opening it early."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.errors import InputError, NothingToRun
from harness.model.paths import PROGRAM
from harness.protocol.context_opening import open_in_thread, set_for_driver

if TYPE_CHECKING:
    import argparse

    from harness.device.backend import Backend


def check_device_name(name: str) -> None:
    """Raise InputError unless `name` is auto, cpu or cuda:N; needs no torch."""
    if name not in ("auto", "cpu", "cuda") and not re.fullmatch(r"cuda:\d+", name):
        raise InputError(f"--device {name} is no device", hint="Type --device auto, --device cuda:0 or --device cpu")


def check_device_names(text: str, device: str = "auto") -> tuple[str, ...]:
    """The names in `--devices all` or `cuda:0,cuda:2` beside --device `device`; needs no torch. Raises InputError."""
    if device != "auto":
        raise InputError(f"--device {device} and --devices {text} say two things", hint="Leave one of the two out")
    names = tuple(each.strip() for each in text.split(","))
    if names == ("all",):
        return names
    hint = "Type --devices all, or --devices cuda:0,cuda:2"
    for name in names:
        if name != "cpu" and not re.fullmatch(r"cuda:\d+", name):
            raise InputError(f"--devices {text}: '{name}' is no device", hint=hint)
        if name != "cpu" and names.count(name) > 1:
            raise InputError(f"--devices {text} names {name} twice", hint=hint)
    return names


def check_ray(options: argparse.Namespace) -> None:
    """Raise InputError where --ray and other flags say two things; needs neither Ray nor torch."""
    if options.accelerator and not options.ray:
        raise InputError("--accelerator chooses among a cluster's GPUs", hint="Add --ray auto")
    if options.ray and getattr(options, "devices", None):
        raise InputError("--devices names GPUs of this machine, and --ray those of a cluster", hint="Leave one of the two out")
    if options.ray and options.device not in ("auto", "cpu"):
        hint = "Leave --device out, or type --device cpu"
        raise InputError(f"--device {options.device} names a GPU of this machine, and --ray a cluster", hint=hint)


def ray_words(options: argparse.Namespace) -> list[str]:
    """Return --ray and --accelerator as they were typed."""
    return [word for flag in ("ray", "accelerator") if (value := getattr(options, flag)) for word in (f"--{flag}", value)]


def devices_of(names: Sequence[str], tell: Callable[[str], None]) -> tuple[str, ...]:
    """`names`, with "all" as all GPUs that PyTorch can use or else the CPU; touches none. Raises NothingToRun."""
    import torch

    from harness.device.cuda import cuda_is_there

    count = torch.cuda.device_count() if cuda_is_there() else 0
    if tuple(names) == ("all",):
        if not count:
            tell(f"--devices all means the CPU on this machine: {why_no_gpu()}")
        return tuple(f"cuda:{index}" for index in range(count)) or ("cpu",)
    for name in names:
        if name != "cpu" and int(name.partition(":")[2]) >= count:
            there = f"this machine shows {count} GPU(s) to PyTorch, counted from cuda:0" if count else why_no_gpu()
            raise NothingToRun(f"--devices {','.join(names)}: there is no {name}: {there}")
    return tuple(names)


def require_torch() -> None:
    """Raise NothingToRun where there is no PyTorch to judge with; does not import it."""
    if importlib.util.find_spec("torch") is None:
        raise not_installed("PyTorch")


def not_installed(package: str) -> NothingToRun:
    """What is said where a package is missing that this software needs."""
    return NothingToRun(
        f"{package} is not installed for {sys.executable}. Activate the environment that has it "
        f"(. .venv/bin/activate), or type {PROGRAM} doctor"
    )


def device_kind(name: str) -> str:
    """"cuda" or "cpu" for `auto`, `cpu` or `cuda:N`."""
    from harness.device.cuda import cuda_is_there

    return "cpu" if name == "cpu" or (name == "auto" and not cuda_is_there()) else "cuda"


def open_backend(name: str) -> Backend:
    """The backend for `auto`, `cpu` or `cuda:N`. Raises NothingToRun when there is no such GPU."""
    import torch

    from harness.device.cuda import cuda_is_there

    set_for_driver()
    if device_kind(name) == "cpu":
        from harness.device.cpu import CpuBackend

        return CpuBackend()
    if not cuda_is_there():
        raise NothingToRun(f"--device {name}: {why_no_gpu()}. `{PROGRAM} doctor` says more; --device cpu runs here")
    index = int(name.partition(":")[2] or 0)
    if index >= (count := torch.cuda.device_count()):
        raise NothingToRun(f"--device {name}: this machine shows {count} GPU(s) to PyTorch, counted from cuda:0")
    from harness.device.cuda import CudaBackend

    return CudaBackend(index)


def why_no_gpu() -> str:
    """One clause on why PyTorch has no GPU here."""
    import torch

    if torch.version.cuda is None:
        return f"this PyTorch ({torch.__version__}) is built without CUDA"
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return "CUDA_VISIBLE_DEVICES is set and empty, which hides every GPU"
    try:
        torch.cuda.init()
        words = ""
    except (RuntimeError, AssertionError) as error:
        words = f" ({' '.join(str(error).split())[:200]})"
    return f"PyTorch finds no usable NVIDIA GPU{words}"


def open_context_early(name: str) -> threading.Thread | None:
    """Have a thread open the GPU of `auto` or `cuda:N`, where this PyTorch can use one, while PyTorch is imported."""
    spec = None if name == "cpu" else importlib.util.find_spec("torch")  # which imports nothing
    if spec is None or spec.origin is None or not any(Path(spec.origin).parent.glob("lib/libtorch_cuda.so*")):
        return None
    return open_in_thread(int(name.partition(":")[2] or 0))
