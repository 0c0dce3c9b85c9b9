"""Importing a candidate's file, constructing its `ModelNew`, and describing what went wrong without our frames."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from harness.protocol import parallel_draws, passes
from harness.protocol.call_form import called

_HERE = str(Path(__file__).resolve().parents[1])
_TORCH = str(Path(torch.__file__).resolve().parent)
_STDLIB = sysconfig.get_paths()["stdlib"]


def construct(
    module: ModuleType, arguments: list[Any], seed: int, device: torch.device, *, by_name: bool = False
) -> torch.nn.Module:
    """`ModelNew(*arguments)` on `device`, made under `seed` as the reference is.

    With `by_name` the arguments are `[positional], {named}`.
    """
    torch.manual_seed(seed)
    with parallel_draws.entered():
        made = called(module.ModelNew, arguments, by_name)
    return made.to(device)


def reference(command: dict[str, Any], arguments: list[Any], device: torch.device) -> torch.nn.Module:
    """The problem's own `Model`, from its source with its sizes in it, as a launch of the command's mode calls it."""
    module = ModuleType("reference")
    exec(compile(command["source"], "reference.py", "exec"), module.__dict__)
    torch.manual_seed(command["seed"])
    with parallel_draws.entered():
        model = called(module.Model, arguments, command["init_by_name"])
    return passes.as_called(model.to(device), command["mode"], by_name=command["by_name"])


def describe(error: BaseException) -> dict[str, Any]:
    """A frame's worth of words on an exception: its type, message, place in the candidate, and traceback.

    Of what Triton's interpreter raises, its cause in the kernel.
    """
    in_kernel = type(error).__name__ == "InterpreterError" and error.__cause__ is not None
    error = error.__cause__ if in_kernel else error
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_HERE) and "<frozen importlib" not in frame.filename
    ]
    theirs = [frame for frame in frames if not frame.filename.startswith((_TORCH, _STDLIB))]
    text = "".join(traceback.format_list(frames)[-6:] + traceback.format_exception_only(error))
    return {
        "type": type(error).__name__,
        "message": _short(str(error)),
        "where": f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else "",
        "frames": [f"{frame.filename}:{frame.lineno}" for frame in frames[-12:]],
        "traceback": text[-6000:],
        "in_kernel": in_kernel,
        # On a CPU a failed allocation is a plain RuntimeError of PyTorch's.
        "out_of_memory": isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "DefaultCPUAllocator" in str(
            error
        ),
    }


def _short(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[0][:400] if lines else ""
