"""Host memory has an end as a GPU's has: what asks for more than there is fails, where the system would end the process."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Addresses are counted, and not what lies at them: the pools and stacks of threads have some that are never used.
_UNUSED_BYTES = 1 << 30
_WORDS = ("can't allocate memory", "unable to allocate", "out of memory")


@contextmanager
def at_most(more_bytes: int) -> Iterator[None]:
    """Have this process take `more_bytes` beyond what it has, within about a GB. Raises MemoryError for what asks for more.

    Without effect where the system does not say what it has.
    """
    limits = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        yield
        return
    soft = pages * resource.getpagesize() + more_bytes + _UNUSED_BYTES
    set_before = [limit for limit in limits if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([soft, *set_before]), limits[1]))
    try:
        yield
    except Exception as error:
        if _is_of_memory(error):
            raise MemoryError(str(error)) from error
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _is_of_memory(error: BaseException | None) -> bool:
    """Whether it, or what it came of, is an allocation that failed: PyTorch raises a RuntimeError with words of its own."""
    if error is None:
        return False
    said = isinstance(error, RuntimeError) and any(words in str(error).lower() for words in _WORDS)
    return isinstance(error, MemoryError) or said or _is_of_memory(error.__cause__)
