"""Code of a worker that `core_watch` cannot have met: in processes that nobody looks at, and in memory that was changed.

The system ends all looks at a process that begins a program which nobody may read, and notes no code that is moved or written
over. What it says of the processes' time and of their memory shows both.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from harness.attribution.code_regions import SYSTEMS, Mapped, is_anybodys
from harness.protocol.installed import is_installed
from harness.sandbox import processes

# Looks come at least so often of the time that a thread has a core, and a process that had less time may be met by none.
_PERIOD_S = 0.01
_LEAST_S, _LEAST_SHARE = 0.3, 0.5
_LEAST_WITHOUT_S = 0.1  # of one that was met by no look at all
_TICKS_S = 1 / os.sysconf("SC_CLK_TCK")
_PRESENT, _SWAPPED, _OF_A_FILE = 1 << 63, 1 << 62, 1 << 61  # of an entry of /proc/PID/pagemap
_ENTRY_BYTES, _PAGE_BYTES = 8, os.sysconf("SC_PAGESIZE")


class CoreBalance:
    """How much of the cores the processes that begin with `pids` had, and how often they were met meanwhile."""

    def __init__(self, pids: Collection[int]) -> None:
        self._pids = tuple(pids)
        self._before = {pid: _had_s(pid) for pid in pids}

    def unmet(self, met: Mapping[int, int]) -> Iterator[str]:
        """Sentences on processes that had a core and were met far less often than that takes; `met` has looks by process.
        Those that have ended count together, by what those who waited for them say.
        """
        alive = {pid: _had_s(pid) for pid in {*self._pids, *processes.descendants(*self._pids)}}
        ended_s = 0.0
        for pid, (own_s, childrens_s) in alive.items():
            before_s, childrens_before_s = self._before.get(pid, (0.0, 0.0))
            ended_s += childrens_s - childrens_before_s
            yield from _sentence(own_s - before_s, met.get(pid, 0))
        yield from _sentence(ended_s, sum(count for pid, count in met.items() if pid not in alive))


class MappedCode:
    """Whether code of processes is as it is in its file, and that of `pids` lies where the system saw it come."""

    def __init__(self, pids: Collection[int]) -> None:
        self._pids = frozenset(pids)
        self._seen: dict[int, list[tuple[int, int, str]]] = {}

    def moved(self, pids: Collection[int], mapped: Sequence[Mapped]) -> Iterator[str]:
        """Sentences on code of the processes `pids` that is or does not, where `mapped` is what the system noted."""
        for pid in pids:
            pieces = [(each.begin, each.end, _origin(each.file)) for each in code_of(pid)]
            for begin, end, file in pieces:
                is_anothers = is_installed(file) and not is_anybodys(file)  # whose looks count against it anyway
                if file and not is_anothers and _is_written_over(pid, begin, end):
                    name = os.path.basename(file)
                    yield f"code of {name} is not what that file holds: it was written over in memory"
            if pid not in self._pids or pieces == self._seen.get(pid):
                continue
            self._seen[pid] = pieces
            noted = sorted((each for each in mapped if each.pid == pid), key=lambda each: each.time_ns, reverse=True)
            for begin, _, file in pieces:
                last = next((_origin(each.file) for each in noted if each.begin <= begin < each.end), "")
                if last != file:
                    here, there = (os.path.basename(each) or "no file" for each in (file, last))
                    yield f"code of {here} lies where the system saw that of {there} come: it was moved"


def _sentence(had_s: float, count: int) -> Iterator[str]:
    if had_s > (_LEAST_S if count else _LEAST_WITHOUT_S) and count < _LEAST_SHARE * had_s / _PERIOD_S:
        yield f"a process that it began had a core for {had_s:.1f} s and was met by {count} looks: what it did is not known"


def _had_s(pid: int) -> tuple[float, float]:
    """For how long a process had a core outside of the system, and those had which it has waited for."""
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return int(fields[11]) * _TICKS_S, int(fields[13]) * _TICKS_S
    return 0.0, 0.0


def code_of(pid: int) -> Iterator[Mapped]:
    """The memory of a process that may be executed, as it is now; its file is "" where it comes from none."""
    with suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            bounds, protection, _, _, _, *name = line.rstrip("\n").split(maxsplit=5)
            if "x" in protection:
                begin, end = (int(each, 16) for each in bounds.split("-"))
                yield Mapped(0, pid, begin, end, name[0] if name else "", is_writable="w" in protection)


def _origin(file: str) -> str:
    """Where code comes from that is noted with the name `file`: a path, as it was if it has been removed since, the system
    itself, or "" for neither.
    """
    is_one = file in SYSTEMS or (file.startswith("/") and not file.startswith("//"))  # "//anon" is memory of no file
    return file.removesuffix(" (deleted)") if is_one else ""


def _is_written_over(pid: int, begin: int, end: int) -> bool:
    """Whether a page there is memory of the process's own, where a file's would be."""
    with suppress(OSError, struct.error), open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
        file.seek(begin // _PAGE_BYTES * _ENTRY_BYTES)
        entries = array("Q", file.read((end - begin) // _PAGE_BYTES * _ENTRY_BYTES))
        return any(map(_is_its_own, entries))
    return False


def _is_its_own(entry: int) -> bool:
    """Whether a page is memory of no file: what was written to is swapped out where it is not there, a file's page is not."""
    return bool(entry & (_PRESENT | _SWAPPED)) and not entry & _OF_A_FILE
