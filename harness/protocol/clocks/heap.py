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
_BLOCK_BYTES = 16 * 1024 * 1024
# How far the heap grows ahead: so many times what a call is given and returns. On two cores a lower-triangular product
# of 256, 512, 1024 and 2048 rows, alone or among ten other operations, then took no page fault after its first call;
# with four instead of sixteen, at 1024 rows, up to 4096 in each of several calls.
_TIMES_A_CALL = 16
_LEAST_BLOCKS, _MOST_BLOCKS = 1, 24


class SteadyHeap:
    """This process's heap, which from then on gives no block of up to 32 MiB back; `is_steady` if glibc took that."""

    def __init__(self) -> None:
        self.is_steady = False
        self._grown = 0
        if not sys.platform.startswith("linux"):
            return
        self._library = ctypes.CDLL(None)
        try:
            mallopt, self._malloc, self._free = self._library.mallopt, self._library.malloc, self._library.free
        except AttributeError:
            return
        self._malloc.restype, self._malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self._free.argtypes = [ctypes.c_void_p]
        taken = mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD), mallopt(_M_TRIM_THRESHOLD, _TRIM_ABOVE)
        self.is_steady = all(taken)

    def grow_for(self, call_bytes: int) -> None:
        """Have pages ready for calls of which each is given and returns `call_bytes`."""
        wanted = min(max(-(-_TIMES_A_CALL * call_bytes // _BLOCK_BYTES), _LEAST_BLOCKS), _MOST_BLOCKS)
        if not self.is_steady or wanted <= self._grown:
            return
        self._grown = wanted
        blocks = [self._malloc(_BLOCK_BYTES) for _ in range(wanted)]
        for block in filter(None, blocks):
            self._fault_in(block)
        for block in filter(None, blocks):
            self._free(block)

    def _fault_in(self, block: int) -> None:
        """Have the system give the block its pages: all at once where it can (Linux 5.14), in half the time."""
        page = mmap.PAGESIZE
        start, end = -(-block // page) * page, (block + _BLOCK_BYTES) // page * page
        pages = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
        if self._library.madvise(*pages, _MADV_POPULATE_WRITE):
            ctypes.memset(block, 1, _BLOCK_BYTES)
