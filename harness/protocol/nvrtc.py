"""CUDA C++ compiled at run time by NVRTC, which ships with PyTorch: the harness's own few kernels need no nvcc."""

from __future__ import annotations

import ctypes
import functools
import glob
import os
import sysconfig
from contextlib import suppress


class NvrtcError(RuntimeError):
    """Raised when the harness's own kernels cannot be compiled here."""


@functools.cache
def compile_cubin(source: str, major: int, minor: int) -> bytes:
    """`source` as a cubin for compute capability `major.minor`, compiled once a process. Raises NvrtcError."""
    nvrtc = _nvrtc()
    program = ctypes.c_void_p()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"harness.cu", 0, None, None))
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{major}{minor}".encode())
    _check(nvrtc.nvrtcCompileProgram(program, 1, options))
    size = ctypes.c_size_t()
    _check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    cubin = ctypes.create_string_buffer(size.value)
    _check(nvrtc.nvrtcGetCUBIN(program, cubin))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin.raw


def _check(code: int) -> None:
    if code:
        raise NvrtcError(f"NVRTC failed with code {code}")


def _nvrtc() -> ctypes.CDLL:
    site = sysconfig.get_paths()["purelib"]
    wheels = sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib", "libnvrtc.so.*")), reverse=True)
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    others = "libnvrtc.so.13", "libnvrtc.so.12", os.path.join(home, "lib64", "libnvrtc.so"), "libnvrtc.so"
    for name in (*[path for path in wheels if "builtins" not in path], *others):
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise NvrtcError("libnvrtc cannot be found; it comes with PyTorch's CUDA builds and with the CUDA toolkit")
