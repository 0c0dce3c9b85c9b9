"""What stands in for a GPU in a process that has none, so that a candidate's import or interpreted kernels can go on.

Builders answer questions about the device's properties; what wants more raises as it does without a GPU. A worker that
runs a Triton candidate on the CPU also lets its tensors pass for a GPU's, since such candidates refuse others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch


def answer_for(properties: Mapping[str, Any] | None) -> None:
    """Have `torch.cuda` answer for a device of these properties from here on; with None it is as it was."""
    for name, real in _real.items():
        setattr(torch.cuda, name, real)
    _real.clear()
    if properties is None:
        return
    device = SimpleNamespace(**properties)
    answers = {
        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
        "get_device_properties": lambda device_=None: device,
        "mem_get_info": lambda device_=None: (device.total_memory, device.total_memory),
        # That there is one is all that these could find out here.
        "init": lambda: None, "set_device": lambda device_: None, "synchronize": lambda device_=None: None,
    }
    for name, answer in answers.items():
        _real[name] = getattr(torch.cuda, name)
        setattr(torch.cuda, name, answer)


def interpret_triton(properties: Mapping[str, Any]) -> None:
    """Have Triton's own interpreter run the kernels that are defined from here on, for a device of these properties.

    Call it before Triton is imported, in a process that does nothing else: it cannot be undone. Every tensor says that it
    is on a GPU, and the context managers that choose a device choose nothing. Products in TF32, which the interpreter
    computes in fp32, take operands that were rounded to TF32.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    answer_for(properties)
    torch.Tensor.is_cuda = property(lambda tensor: True)
    torch.cuda.device = torch.cuda.device_of = _DeviceContext
    try:
        from triton.runtime import driver
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.interpreter import InterpreterBuilder
    except ImportError:  # the candidate's own import says so
        return
    driver.set_active(_driver_of(properties))
    # Interpreted calls take no time that tells configurations apart: of equal times the first one's is taken.
    Autotuner._bench = lambda self, *arguments, config, **meta: [1.0, 1.0, 1.0]
    InterpreterBuilder.create_dot = _with_tf32(InterpreterBuilder.create_dot)


def _driver_of(properties: Mapping[str, Any]) -> SimpleNamespace:
    """What `triton.runtime.driver.active` answers, under Triton's names for the properties."""
    known = {
        "multiprocessor_count": properties["multi_processor_count"], "warpSize": properties["warp_size"],
        "max_shared_mem": properties["shared_memory_per_block_optin"],
        "max_num_regs": properties["regs_per_multiprocessor"],
    }
    return SimpleNamespace(
        get_current_device=lambda: 0, get_active_torch_device=lambda: torch.device("cpu"),
        get_benchmarker=lambda: None, utils=SimpleNamespace(get_device_properties=lambda device: known),
    )


def _with_tf32(create_dot: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the interpreter's product so that it rounds fp32 operands where the kernel asks for TF32."""

    def create(self: Any, a: Any, b: Any, d: Any, input_precision: Any, *more: Any) -> Any:
        if getattr(input_precision, "name", "") == "TF32":
            a, b = (type(each)(_rounded_to_tf32(each.data), each.dtype) for each in (a, b))
        return create_dot(self, a, b, d, input_precision, *more)

    return create


def _rounded_to_tf32(values: Any) -> Any:
    """Round a float32 array to TF32's 10 bits of mantissa, to nearest, ties away from zero; others stay as they are."""
    import numpy

    if values.dtype != numpy.float32:
        return values
    bits = numpy.ascontiguousarray(values).view(numpy.uint32)
    rounded = ((bits + numpy.uint32(0x1000)) & numpy.uint32(0xFFFFE000)).view(numpy.float32)
    return numpy.where(numpy.isfinite(values), rounded, values)


class _DeviceContext:
    """`torch.cuda.device` and `device_of` where there is one device, which is none."""

    def __init__(self, device: Any) -> None:
        self.idx = self.prev_idx = 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> bool:
        return False


_real: dict[str, Any] = {}
