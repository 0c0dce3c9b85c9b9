"""Host memory has an end as a GPU's has: what asks for more than there is fails, where the system would end the process."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Addresses are counted, and not what lies at them: the pools and stacks of threads have some that are never used.
_UNUSED_BYTES = 1 << 30
_WORDS = "can't allocate memory"
_CGROUP_LIMIT, _CGROUP_USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def available_host_bytes() -> int:
    """What the system can give without swapping, and no more than is left of this container's own limit."""
    available = _of_system()
    try:
        left = int(_CGROUP_LIMIT.read_text()) - int(_CGROUP_USED.read_text())
    except (OSError, ValueError):  # no container, or one without a limit
        return available
    return max(0, min(available, left))


def _of_system() -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextmanager
def at_most(more_bytes: int) -> Iterator[None]:
    """Have this process take `more_bytes` beyond what it has, or a GB more, and never what the machine does not have.
    Raises MemoryError for what asks for more. Without effect where the system does not say what it has.
    """
    limits = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        yield
        return
    soft = pages * resource.getpagesize() + min(more_bytes + _UNUSED_BYTES, available_host_bytes())
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
    said = isinstance(error, RuntimeError) and _WORDS in str(error)
    return isinstance(error, MemoryError) or said or _is_of_memory(error.__cause__)
