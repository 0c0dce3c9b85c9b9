"""How many files a process may hold open. Standard library only, for use inside the sandbox too."""

from __future__ import annotations

import resource


def allow_descriptors(count: int) -> None:
    """Raise this process's own limit to `count` open files, or as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
