"""How much an untrusted child may take: size of files, memory, processes.

Resource limits are set by `init_process` inside the child; memory and processes are held by a cgroup (version 2) where
this process may make one. Without a GPU a child is also held to an address space; CUDA reserves far more than it uses.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

_GROUP_PREFIX = "kernel-referee"
_numbers = count()


@dataclass(frozen=True)
class ResourceLimits:
    """`file_bytes` bounds every file (and `ftruncate` of shared memory) the child writes; None leaves the rest free.
    Where the sandbox can, it has with `own_shared_memory` a /dev/shm of its own, and with `own_scratch` an empty /tmp
    and of the user's files only those that it needs.
    """

    file_bytes: int
    memory_bytes: int | None = None
    processes: int | None = None
    address_bytes: int | None = None
    own_shared_memory: bool = False
    own_scratch: bool = False


def default_limits(*, gpu: bool = True) -> ResourceLimits:
    """Files of 4 GiB, 80 % of this machine's memory, 4096 processes and threads, no limit on processor time.

    It has a /dev/shm of its own: CUDA opens the handles of another process's memory and events without the machine's. And
    a /tmp, into which published candidates write sources by a name that they all share.
    Without `gpu` each process also has that much address space and no more, or half of it where the machine is large.
    """
    memory_bytes = _machine_memory_bytes()
    address_bytes = None if gpu or memory_bytes is None else min(memory_bytes, max(memory_bytes // 2, 16 << 30))
    return ResourceLimits(
        file_bytes=4 << 30, memory_bytes=memory_bytes, processes=4096, address_bytes=address_bytes,
        own_shared_memory=True, own_scratch=True,
    )


def _machine_memory_bytes() -> int | None:
    with suppress(AttributeError, ValueError, OSError):
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 0.8)
    return None


class Group:
    """A cgroup of version 2 that holds one child and all it starts; `remove` leaves nothing of it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def holds_memory(self) -> bool:
        """Whether the kernel keeps this group to a memory limit (its controllers may not be delegated to us)."""
        return (self.path / "memory.max").exists()

    def limit(self, limits: ResourceLimits) -> None:
        """Write the limits that the group has controllers for. Raises OSError when the kernel refuses one."""
        for name, value in (("memory.max", limits.memory_bytes), ("pids.max", limits.processes)):
            if value is not None and (self.path / name).exists():
                (self.path / name).write_text(str(value))
        # A child that swaps instead of failing would slow every later measurement.
        if limits.memory_bytes is not None and (self.path / "memory.swap.max").exists():
            (self.path / "memory.swap.max").write_text("0")

    def out_of_memory_kills(self) -> int:
        """How many of its processes the kernel has killed for going over the memory limit."""
        try:
            lines = (self.path / "memory.events").read_text().splitlines()
        except OSError:
            return 0
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def remove(self, wait_s: float = 2.0) -> None:
        """Kill what is left in the group and delete it; gives up after `wait_s` seconds."""
        deadline = time.monotonic() + wait_s
        while self.path.exists():
            with suppress(OSError):
                (self.path / "cgroup.kill").write_text("1")
            try:
                self.path.rmdir()
                return
            except OSError:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.005)


def limited_group(limits: ResourceLimits) -> Group | None:
    """Make an empty group that is kept to `limits`; None where none can be made, or the kernel refuses a limit."""
    group = new_group() if sys.platform == "linux" else None
    if group is not None:
        try:
            group.limit(limits)
        except OSError:
            group.remove()
            return None
    return group


def new_group() -> Group | None:
    """Make an empty group, one with a memory controller if there is a way; None where no group can be made."""
    without_memory = None
    for group in filter(None, map(_make, _parents())):
        if group.holds_memory:
            if without_memory is not None:
                without_memory.remove()
            return group
        if without_memory is None:
            without_memory = group
        else:
            group.remove()
    return without_memory


def _make(parent: Path) -> Group | None:
    if not (parent / "cgroup.procs").exists() or not os.access(parent, os.W_OK):
        return None
    _sweep(parent)
    for controller in ("+memory", "+pids"):
        with suppress(OSError):  # not ours to delegate, or the group has processes of its own; it may be on already
            (parent / "cgroup.subtree_control").write_text(controller)
    path = parent / f"{_GROUP_PREFIX}-{os.getpid()}-{next(_numbers)}"
    try:
        path.mkdir()
    except OSError:
        return None
    return Group(path)


def _sweep(parent: Path) -> None:
    """Delete the empty groups of harness processes that were killed before they could."""
    for left in parent.glob(f"{_GROUP_PREFIX}-*-*"):
        pid = left.name.split("-")[-2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with suppress(OSError):
                left.rmdir()


def _parents() -> Iterator[Path]:
    """Yield where a group of ours may be made: below our own group, else beside it."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        groups = Path("/proc/self/cgroup").read_text().splitlines()
        own = next(line[3:] for line in groups if line.startswith("0::"))
    except (OSError, StopIteration):
        return
    for line in mounts:
        left, _, right = line.partition(" - ")
        if not right.startswith("cgroup2 "):
            continue
        root, point = left.split()[3:5]
        inside = own[len(root):] if root != "/" and own.startswith(root) else own
        group = Path(point) / inside.strip("/")
        yield from (group, group.parent) if group != Path(point) else (group,)
        return
