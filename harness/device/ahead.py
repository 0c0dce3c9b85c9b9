"""A GPU's context, made while PyTorch is still being imported: the driver needs no Python for it.

PyTorch finds it as it would find its own: both are the device's one primary context.
"""

from __future__ import annotations

import ctypes
import os
import threading
from importlib.util import find_spec
from pathlib import Path


def open_ahead(name: str) -> threading.Thread | None:
    """Have a thread open the GPU of `auto` or `cuda:N`, where this PyTorch can use one; what fails there is PyTorch's
    to say.
    """
    if name == "cpu" or not _uses_gpus():
        return None
    os.environ.setdefault("CUDA_MODULE_LOADING", "LAZY")  # as PyTorch does before it opens one
    index = int(name.partition(":")[2] or 0)
    thread = threading.Thread(target=_open, args=(index,), name="gpu-ahead", daemon=True)
    thread.start()
    return thread


def _uses_gpus() -> bool:
    """Whether this PyTorch comes with its library for GPUs; it is not imported."""
    spec = find_spec("torch")
    return spec is not None and spec.origin is not None and any(
        Path(spec.origin).parent.glob("lib/libtorch_cuda.so*")
    )


def _open(index: int) -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(ctypes.c_uint(0)) == 0 and driver.cuDeviceGet(ctypes.byref(device), ctypes.c_int(index)) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
