"""The few CUDA driver calls that PyTorch does not offer, through ctypes and without a compiler. Each assumes the
device's primary context current in this thread. Streams are given by handle; 0 is the legacy default one.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence

IPC_HANDLE_BYTES = 64
_pointer, _stream = ctypes.c_uint64, ctypes.c_void_p
_HOST_REGISTER_PORTABLE_AND_MAPPED = 0x1 | 0x2
_IPC_LAZY_ENABLE_PEER_ACCESS = 0x1
_LIMIT_PERSISTING_L2_BYTES = 0x06
_WAIT_UNTIL_AT_LEAST = 0x0


class DriverError(RuntimeError):
    """Raised when a driver call fails; the message names the call and the driver's own word for the error."""


class _IpcHandle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_ubyte * IPC_HANDLE_BYTES)]


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise DriverError(f"the CUDA driver library {name} cannot be loaded") from error


def _call(name: str, *arguments: object) -> None:
    code = getattr(_library(), name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        _library().cuGetErrorName(code, ctypes.byref(text))
        raise DriverError(f"{name} failed: {(text.value or b'unknown error').decode()} ({code})")


def allocate(size_bytes: int) -> int:
    """A device allocation of its own, outside every caching allocator; returns its address."""
    address = ctypes.c_uint64()
    _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
    return address.value


def free(address: int) -> None:
    _call("cuMemFree_v2", _pointer(address))


def ipc_handle(address: int) -> bytes:
    """The 64-byte handle by which another process opens the allocation at `address`."""
    handle = _IpcHandle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), _pointer(address))
    return bytes(handle.reserved)


def open_ipc(handle: bytes) -> int:
    """Map another process's allocation; returns its address here."""
    address = ctypes.c_uint64()
    structure = _IpcHandle.from_buffer_copy(handle)
    _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), structure, ctypes.c_uint(_IPC_LAZY_ENABLE_PEER_ACCESS))
    return address.value


def close_ipc(address: int) -> None:
    _call("cuIpcCloseMemHandle", _pointer(address))


def map_host(address: int, size_bytes: int) -> int:
    """Page-lock `size_bytes` of this process's memory at `address`; returns the device's address for it."""
    mapped = ctypes.c_uint(_HOST_REGISTER_PORTABLE_AND_MAPPED)
    _call("cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size_bytes), mapped)
    device_address = ctypes.c_uint64()
    _call("cuMemHostGetDevicePointer_v2", ctypes.byref(device_address), ctypes.c_void_p(address), ctypes.c_uint(0))
    return device_address.value


def unmap_host(address: int) -> None:
    _call("cuMemHostUnregister", ctypes.c_void_p(address))


def stream_write(stream: int, device_address: int, value: int) -> None:
    """Write a 32-bit word once all earlier work of the stream is done."""
    target, flags = _pointer(device_address), ctypes.c_uint(0)
    _call("cuStreamWriteValue32_v2", _stream(stream), target, ctypes.c_uint32(value), flags)


def stream_wait(stream: int, device_address: int, value: int) -> None:
    """Hold all later work of the stream until the 32-bit word is at least `value` (as a cyclic difference).

    The device is free for other processes meanwhile, which a kernel that waits would share with them in slices.
    """
    until = ctypes.c_uint(_WAIT_UNTIL_AT_LEAST)
    _call("cuStreamWaitValue32_v2", _stream(stream), _pointer(device_address), ctypes.c_uint32(value), until)


def fill_bytes(stream: int, address: int, byte: int, size_bytes: int) -> None:
    """Set `size_bytes` bytes at a device address, in stream order."""
    _call("cuMemsetD8Async", _pointer(address), ctypes.c_ubyte(byte), ctypes.c_size_t(size_bytes), _stream(stream))


def reset_persisting_l2() -> None:
    """Return every persisting L2 line of the current context to normal."""
    _call("cuCtxResetPersistingL2Cache")


def forbid_persisting_l2() -> None:
    """Leave no part of the L2 for persisting lines in the current context. Waits for all of its work."""
    _call("cuCtxSetLimit", ctypes.c_int(_LIMIT_PERSISTING_L2_BYTES), ctypes.c_size_t(0))


def load_function(cubin: bytes, name: str) -> int:
    """Load a cubin into the current context and return the handle of its function `name`."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuModuleLoadData", ctypes.byref(module), cubin)
    _call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    return function.value


class Kernel:
    """The function `name` of a cubin, loaded into the current context, on a one-dimensional grid.

    `types` are the ctypes of its arguments, which are laid out once: a worker makes half a dozen launches for each
    timed call, and to lay them out anew took three quarters of what each took in Python. For one thread at a time.
    """

    def __init__(self, cubin: bytes, name: str, blocks: int, threads: int, types: Sequence[type]) -> None:
        one = ctypes.c_uint(1)
        self._arguments = [each() for each in types]
        self._addresses = (ctypes.c_void_p * len(types))(*map(ctypes.addressof, self._arguments))
        self._stream = ctypes.c_void_p()
        self._rest = (
            ctypes.c_void_p(load_function(cubin, name)), ctypes.c_uint(blocks), one, one,
            ctypes.c_uint(threads), one, one, ctypes.c_uint(0), self._stream, self._addresses, None,
        )

    def launch(self, stream: int, *values: int | float) -> None:
        """Queue one launch with `values` for its arguments."""
        for argument, value in zip(self._arguments, values, strict=True):
            argument.value = value
        self._stream.value = stream
        _call("cuLaunchKernel", *self._rest)


class _RawBytes:
    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,), "typestr": "|u1", "data": (address, False), "version": 3,
        }


def as_bytes(address: int, size_bytes: int, device: str):
    """A one-dimensional uint8 tensor over device memory that PyTorch does not own."""
    import torch

    return torch.as_tensor(_RawBytes(address, size_bytes), device=device)
