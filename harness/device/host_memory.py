"""How much memory this machine has left for a process."""

from __future__ import annotations

import os
from pathlib import Path

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
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
