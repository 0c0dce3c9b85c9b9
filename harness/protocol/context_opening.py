"""A GPU's context, made in a thread while PyTorch or something else is being imported: the driver needs no Python.
PyTorch finds it as its own, since both are the device's one primary context; what fails here is left to PyTorch to say.
"""

from __future__ import annotations

import ctypes
import os
import threading

# What the driver reads as it opens a device: kernels are loaded when they are first launched, as PyTorch has it, and a
# stream takes four times as many launches (4,094 where it took 1,022) before it makes the host wait, since only what is
# queued ahead is timed without the host.
DRIVER_SETTINGS = {"CUDA_MODULE_LOADING": "LAZY", "CUDA_SCALE_LAUNCH_QUEUES": "4x"}


def open_in_thread(index: int) -> threading.Thread:
    """Have a thread make the primary context of the GPU `index`, counted among the visible ones."""
    set_for_driver()
    thread = threading.Thread(target=_open, args=(index,), name="opening a GPU", daemon=True)
    thread.start()
    return thread


def set_for_driver() -> None:
    """Set what the driver is to read, where nobody has; call it before this process opens a device."""
    for name, value in DRIVER_SETTINGS.items():
        os.environ.setdefault(name, value)


def _open(index: int) -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    if driver.cuInit(ctypes.c_uint(0)) == 0 and driver.cuDeviceGet(ctypes.byref(device), ctypes.c_int(index)) == 0:
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
