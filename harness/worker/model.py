"""The models of a worker, a candidate's and the problem's own, and what went wrong in them without our frames."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import torch

from harness.protocol import parallel_draws, passes
from harness.protocol.call_form import called

_HERE = str(Path(__file__).resolve().parents[1])
_TORCH = str(Path(torch.__file__).resolve().parent)
_STDLIB = sysconfig.get_paths()["stdlib"]
_OFF = "ieee"
_get = getattr(torch._C, "_get_fp32_precision_getter", None)
_set = getattr(torch._C, "_set_fp32_precision_setter", None)
# What is a matrix product, and what is cuDNN's; and oneDNN's products, which one of the flags sets as well.
_OPERATORS = (("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn")) if _get and _set else ()
_KEPT = (*_OPERATORS, ("mkldnn", "matmul")) if _OPERATORS else ()
_get_precision, _set_precision = torch._C._get_float32_matmul_precision, torch._C._set_float32_matmul_precision
_get_cudnn, _set_cudnn = torch._C._get_cudnn_allow_tf32, torch._C._set_cudnn_allow_tf32
_set_cublas = torch._C._set_cublas_allow_tf32


def construct(
    module: ModuleType, arguments: list[Any], seed: int, device: torch.device, *, by_name: bool = False
) -> torch.nn.Module:
    """`ModelNew` on `device`, made under `seed` as the reference is; `arguments` as in `call_form.called`."""
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


@contextmanager
def strictly() -> Iterator[None]:
    """With TF32 off for cuBLAS and cuDNN, whatever the candidate has turned on: eager as in the judge's process. Nothing is
    touched where it is off.

    PyTorch keeps that twice (once before 2.9), in flags and in precisions by backend and operator, and refuses to read
    the flags where they have come to contradict the others. What was there is put back as it was read.
    """
    before = {each: _get(*each) for each in _KEPT}
    precision, cudnn = _read(_get_precision), _read(_get_cudnn)
    if not any(before[each] == "tf32" for each in _OPERATORS) and precision == "highest" and cudnn is False:
        yield
        return
    _set_cublas(False)
    _set_cudnn(False)
    for each in _OPERATORS:
        _set(*each, _OFF)
    try:
        yield
    finally:
        if precision is not None:
            _set_precision(precision)
        if cudnn is not None:
            _set_cudnn(cudnn)
        for each, value in before.items():
            _set(*each, value)


def _read(flag: Any) -> Any:
    """What the flag is; None where the other way to say it has been used."""
    try:
        return flag()
    except RuntimeError:
        return None


def _defined_at(function: Any) -> str:
    code = getattr(function, "__code__", None)
    is_theirs = isinstance(code, CodeType) and not code.co_filename.startswith((_HERE, _TORCH, _STDLIB, "<"))
    return f"{code.co_filename}:{code.co_firstlineno}" if is_theirs else ""


def describe(error: BaseException, called: Any = None) -> dict[str, Any]:
    """A frame's worth of words on an exception, or on its cause in the kernel where Triton's interpreter raised it. Where
    the arguments did not fit, no code of the candidate's was reached: the place is that of the function that was `called`.
    """
    in_kernel = type(error).__name__ == "InterpreterError" and error.__cause__ is not None
    error = error.__cause__ if in_kernel else error
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_HERE) and "<frozen importlib" not in frame.filename
    ]
    theirs = [frame for frame in frames if not frame.filename.startswith((_TORCH, _STDLIB))]
    where = f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""
    if not theirs and isinstance(error, TypeError):
        where = _defined_at(called)
    message = str(error)
    lines = message.strip().splitlines()
    return {
        "type": type(error).__name__,
        "message": lines[0][:400] if lines else "",
        "where": where,
        "frames": [f"{frame.filename}:{frame.lineno}" for frame in frames[-12:]],
        "in_kernel": in_kernel,
        # On a CPU a failed allocation is a plain RuntimeError of PyTorch's.
        "out_of_memory": isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "DefaultCPUAllocator" in message,
    }
