"""Keeping freed host memory in the process, so that a call on the CPU is not timed with its page faults.

By default glibc gives large blocks back to the system and faults them in again, by thresholds that move with what
a process has freed before; a young heap grows with every call. Two processes then time the same call differently:
5.0 and 5.5 ms for one product, 1.1 and 2.0 ms for another.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024
_TRIM_ABOVE = 2**31 - 1
_MADV_POPULATE_WRITE = 23
_BLOCK_BYTES, _BLOCKS = 16 * 1024 * 1024, 24


def keep_freed_memory() -> bool:
    """Fix both thresholds at their largest and let the heap grow ahead; returns whether the C library could."""
    if not sys.platform.startswith("linux"):
        return False
    library = ctypes.CDLL(None)
    try:
        mallopt, malloc, free = library.mallopt, library.malloc, library.free
    except AttributeError:
        return False
    taken = mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD), mallopt(_M_TRIM_THRESHOLD, _TRIM_ABOVE)
    malloc.restype, malloc.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    blocks = [malloc(_BLOCK_BYTES) for _ in range(_BLOCKS)]
    for block in filter(None, blocks):
        _fault_in(library, block)
    for block in filter(None, blocks):
        free(block)
    return all(taken)


def _fault_in(library: ctypes.CDLL, block: int) -> None:
    """Have the system give the block its pages: all at once where it can (Linux 5.14), which takes half the time."""
    start, end = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE, (block + _BLOCK_BYTES) // mmap.PAGESIZE * mmap.PAGESIZE
    at_once = library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_POPULATE_WRITE) == 0
    if not at_once:
        ctypes.memset(block, 1, _BLOCK_BYTES)
