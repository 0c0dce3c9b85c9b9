"""Whose code a worker's cores were at, by the file that it came from: on a CPU what no source and no profiler can hide.

A look at an extension's own file is its own work. The library of C, of its mathematics and of its threads is anybody's.
All else is another's: PyTorch, the interpreter, the libraries of packages, and code that came from no file.
"""

from __future__ import annotations

import bisect
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.attribution.kernel_ownership import LIBRARY_SHARE, OWN_SHARE, Provenance
from harness.protocol.installed import is_installed

OWN, ANYBODYS, PYTORCHS, PYTHONS, LIBRARYS, UNKNOWN = "own", "anybody's", "PyTorch's", "Python's", "a library's", "unknown"
_ANYBODYS = re.compile(
    r"(?:lib(?:c|m|mvec|dl|rt|util|pthread|gcc_s|stdc\+\+|c\+\+(?:abi)?|unwind|atomic|quadmath|gomp|i?omp5?|tbb\w*|numa|"
    r"tcmalloc\w*|jemalloc)|ld-linux[\w-]*|ld)(?:[-.][\w.-]*)?\.so(?:[.\d]*)$|libc-\d[\w.]*\.so$"
)
_PYTHONS = re.compile(r"(?:^|/)(?:python[\d.]*|libpython[\w.]*|lib/python[\d.]+/lib-dynload/.*)$")
_PYTORCHS = re.compile(r"/torch/(?:lib/)?(?:lib(?:torch|c10|shm)\w*|_C)[\w.-]*$")
SYSTEMS = ("[vdso]", "[vsyscall]", "[vectors]")
# What PyTorch and Python take of a call around an extension: pybind11, an output that is made, arguments that are read.
_GLUE_US, _GLUE_SHARE = 150.0, 0.1
# What PyTorch is said to allocate and fill, by the worker's word, and how often outputs may be filled for that.
_MOST_NEUTRAL, _FILLINGS = 0.5, 2.0
_LEAST_LOOKS = 20
# By so many standard deviations more than is allowed: one honest row in thousands comes so far by chance.
_DEVIATIONS = 3.5


@dataclass(frozen=True)
class Look:
    """The instruction that a thread of a process was at, at a time of the monotonic clock."""

    time_ns: int
    pid: int
    address: int


@dataclass(frozen=True)
class Mapped:
    """A stretch of memory that a process may execute from some time on, and the file that it came from."""

    time_ns: int
    pid: int
    begin: int
    end: int
    file: str
    is_writable: bool = False


class Window(NamedTuple):
    """When a call was timed, and how often each core was looked at meanwhile."""

    first_ns: int
    last_ns: int
    period_ns: int


@dataclass(frozen=True)
class CodeSeen:
    """How many looks met whose code, and which of another's files they met, by how many; and how many meet one core that is
    busy through all of the calls. Threads that do nothing but be met add to the former alone. `lost` looks had no room, and
    `unmet` are sentences on what none can have met.
    """

    of: Counter[str]
    files: Counter[str]
    one_core: float
    lost: int = 0
    unmet: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return sum(self.of.values())


def code_seen(
    looks: Iterable[Look], mapped: Sequence[Mapped], windows: Sequence[Window], own_files: Collection[str]
) -> CodeSeen:
    """Whose code the looks met that fall into one of the `windows`, which are in their order."""
    own = {os.path.realpath(each) for each in own_files}
    maps: dict[int, list[Mapped]] = defaultdict(list)
    for each in mapped:
        maps[each.pid].append(each)
    anybodys_maps = max(maps.values(), key=len, default=[])  # a process that was forked begins with its parent's
    # Only these are held against what the system says of them; another may have ended before anybody could.
    checked = {each.pid for each in mapped if not each.time_ns}
    begins = [window.first_ns for window in windows]
    of, files = Counter(), Counter()
    for look in looks:
        index = bisect.bisect_right(begins, look.time_ns) - 1
        if index < 0 or look.time_ns > windows[index].last_ns:
            continue
        place = _place(look, maps.get(look.pid, [])) or _place(look, anybodys_maps)
        owner = _owner(place, own)
        file = os.path.basename(place.file) if place is not None and place.file else "code of no file"
        if owner == OWN and look.pid not in checked:
            # There a library's code can be moved to where the extension's was.
            owner, file = UNKNOWN, f"what a process of its own had in the place of {file}"
        of[owner] += 1
        if owner not in (OWN, ANYBODYS):
            files[file] += 1
    return CodeSeen(of, files, sum((each.last_ns - each.first_ns) / each.period_ns for each in windows))


def is_anybodys(file: str) -> bool:
    """Whether `file` is by its name a library of C, of its mathematics, of the compiler or of threads."""
    return _ANYBODYS.match(os.path.basename(file)) is not None


def less_own(
    provenance: Provenance, seen: CodeSeen | None, fault: str | None, call_us: float, fill_us: float = math.inf
) -> Provenance:
    """`provenance` where the looks bear it out, else what they show of calls that take `call_us`; `fault` says why
    there are none. To fill the outputs once takes PyTorch `fill_us`.
    """
    if provenance.kind not in ("custom", "mixed"):
        return provenance
    if seen is None or seen.count < _LEAST_LOOKS:
        why = fault or f"there were {seen.count if seen else 0} looks, and it takes {_LEAST_LOOKS}"
        return replace(provenance, notes=(*provenance.notes, f"whose code its cores ran was not looked at: {why}"))
    unmet = seen.unmet
    if seen.lost > LIBRARY_SHARE * seen.count:
        unmet = (*unmet, f"of the looks at what its cores ran {seen.lost} had no room beside {seen.count}: what they met is not known")
    if unmet:
        return replace(provenance, kind="unknown", own_share=None, notes=(*provenance.notes, *unmet))
    glue = _GLUE_SHARE + min(_GLUE_US / call_us, 1.0) + min(provenance.neutral_us / call_us, _FILLINGS * fill_us / call_us, _MOST_NEUTRAL)
    unknown = seen.of[UNKNOWN]
    others = seen.of[LIBRARYS] + unknown
    framework = seen.of[PYTORCHS] + seen.of[PYTHONS]
    # Of one core's time: else a thread for each other core, which does nothing, would hide a library's.
    total = min(seen.count, round(seen.one_core))
    if not _is_more(others, total, LIBRARY_SHARE) and not _is_more(framework, total, glue):
        return provenance
    foreign = others + framework
    own = max(0, min(seen.of[OWN], total - foreign))
    share = min(own / (own + foreign), provenance.own_share if provenance.own_share is not None else 1.0)
    where = ", ".join(f"{file} ({count})" for file, count in seen.files.most_common(3))
    note = f"of {seen.count} looks at what its cores ran {foreign} met code that is not its extension's: {where}"
    kind = "unknown" if _is_more(unknown, total, LIBRARY_SHARE) else "library" if share <= LIBRARY_SHARE else "mixed"
    return replace(
        provenance, kind=kind, own_share=None if kind == "unknown" else min(share, OWN_SHARE),
        notes=(*provenance.notes, note),
    )


def _is_more(count: int, total: int, share: float) -> bool:
    """Whether `count` of `total` is more than that share beyond chance."""
    share = min(share, 1.0)
    return count > share * total + _DEVIATIONS * math.sqrt(share * (1 - share) * total) + 2


def _place(look: Look, mapped: Sequence[Mapped]) -> Mapped | None:
    """The last that came to lie where the look met something, of those that were there by then."""
    there = [each for each in mapped if each.begin <= look.address < each.end and each.time_ns <= look.time_ns]
    return max(there, key=lambda each: each.time_ns, default=None)


def _owner(place: Mapped | None, own: Collection[str]) -> str:
    if place is None:
        return UNKNOWN
    if place.file in own:
        return UNKNOWN if place.is_writable else OWN  # what is executed there is no longer what was built
    if place.file in SYSTEMS:
        return ANYBODYS
    if not is_installed(place.file):
        return UNKNOWN
    if _PYTORCHS.search(place.file):
        return PYTORCHS
    if is_anybodys(place.file):
        return UNKNOWN if place.is_writable else ANYBODYS
    return PYTHONS if _PYTHONS.search(place.file) else LIBRARYS
