"""Keeping freed host memory in the process, so that a call on the CPU is not timed with its page faults.

By default glibc gives large blocks back to the system and faults them in again, by thresholds that move with what
a process has freed before: two processes then time the same call differently (5.0 and 6.0 ms for one product).
"""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST_MMAP_THRESHOLD = 32 * 1024 * 1024
_TRIM_ABOVE = 2**31 - 1


def keep_freed_memory() -> bool:
    """Fix both thresholds at their largest; returns whether the C library took them."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return False
    taken = mallopt(_M_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD), mallopt(_M_TRIM_THRESHOLD, _TRIM_ABOVE)
    return all(taken)
