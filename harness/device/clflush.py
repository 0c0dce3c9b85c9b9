"""Inputs flushed out of every core's caches by the judge's own process, whatever a worker did before.

The processor's instruction for it goes by physical memory: a line of a shared region leaves the caches of all cores, in
whatever process it was read. So it holds for a worker too, which can neither leave it out nor see that it was done.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
from collections.abc import Callable
from pathlib import Path

import torch

POLICY = "inputs evicted"
# clflush [rdi] or clflushopt [rdi]; add rdi, 64; cmp rdi, rsi; jb to the first; mfence; ret
_PLAIN, _OPTIMISED = "0fae3f", "660fae3f"
_REST = {_PLAIN: "4883c7404839f772f4", _OPTIMISED: "4883c7404839f772f3"}
_END = "0faef0c3"


def flush_lines(region: torch.Tensor) -> None:
    """Have no core's cache hold anything of `region`; nothing happens where `can_flush_lines` is false."""
    flushing = _flushing()
    if flushing is not None and region.numel():
        flushing(region.data_ptr(), region.data_ptr() + region.numel())


def can_flush_lines() -> bool:
    """Whether this machine has the instruction (x86-64), and lets a process make code of it."""
    return _flushing() is not None


@functools.cache
def _flushing() -> Callable[[int, int], None] | None:
    instruction = _instruction()
    if instruction is None:
        return None
    code = bytes.fromhex(instruction + _REST[instruction] + _END)
    try:
        memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a system that forbids memory which is written and executed
        return None
    memory.write(code)
    at = ctypes.c_char.from_buffer(memory)  # keeps the memory
    flushing = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(ctypes.addressof(at))
    flushing.memory = at
    return flushing


def _instruction() -> str | None:
    if platform.machine() not in ("x86_64", "AMD64"):
        return None
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    return _OPTIMISED if "clflushopt" in flags else _PLAIN if "clflush" in flags else None
