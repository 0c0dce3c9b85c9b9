"""Finding and killing the descendants of a process, through /proc; elsewhere only what the system offers.

Used inside the sandbox by `init_process` (so: standard library only) and outside it by `spawn`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress


def parents() -> dict[int, int]:
    """Return the parent of every process that can be seen; empty where there is no /proc."""
    parent_of: dict[int, int] = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return parent_of
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                # The second field, the name in brackets, may itself hold brackets and spaces.
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields and fields[0] not in (b"Z", b"X"):
            parent_of[int(name)] = int(fields[1])
    return parent_of


def descendants(*pids: int) -> list[int]:
    """Return every living process below `pids`, parents before children."""
    below: dict[int, list[int]] = {}
    for child, parent in parents().items():
        below.setdefault(parent, []).append(child)
    order, waiting = [], list(pids)
    while waiting:
        for child in below.get(waiting.pop(), ()):
            order.append(child)
            waiting.append(child)
    return order


def innermost(pid: int) -> list[int]:
    """Return those of `pid` and its living descendants that have no child: behind a sandbox, the program itself."""
    above = parents()
    family = {pid, *descendants(pid)}
    return sorted(family - {above.get(each) for each in family})


def core_time_ns(pids: Iterable[int]) -> int:
    """How long all threads of these processes together have had a core so far; nothing for those that are gone."""
    total_ns = 0
    for pid in pids:
        with suppress(OSError, ValueError, IndexError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
                    total_ns += int(file.read().split()[0])
    return total_ns


def spent_s(*pids: int) -> float:
    """How many seconds a core worked for these processes, those below them, and the ended ones that any of them waited for."""
    ticks = 0
    for pid in {*pids, *descendants(*pids)}:
        with suppress(OSError, ValueError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                ticks += sum(map(int, file.read().rpartition(b")")[2].split()[11:15]))  # user, system, and of the ended
    return ticks / os.sysconf("SC_CLK_TCK")


def holds_open(pid: int, begins: str) -> bool:
    """Whether a process has a file open whose path begins so; not where nobody may look."""
    with suppress(OSError):
        folder = f"/proc/{pid}/fd"
        return any(os.readlink(f"{folder}/{number}").startswith(begins) for number in os.listdir(folder))
    return False


def kill(pid: int) -> None:
    """Send SIGKILL; a process that is already gone is no error."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))
