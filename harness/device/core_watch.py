"""Looks at what a worker's cores run, taken by the system and read by the judge: the worker has no hand in them.

Linux's perf events interrupt each thread of a process every so often of the time that it has a core, and note the
address of the instruction that it was at, with the code that the process maps. Threads and processes that are begun
later are looked at from their first instruction on. What the addresses say is `attribution.code_regions`'s.
"""

from __future__ import annotations

import ctypes
import fcntl
import io
import mmap
import os
import platform
import struct
import weakref
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from harness.attribution.code_regions import CodeSeen, Look, Mapped, Window, code_seen
from harness.device.unmet_code import CoreBalance, MappedCode, code_of
from harness.sandbox.descriptors import allow_descriptors

# A look takes 2 to 5 µs of the thread that is looked at, and 16 in a virtual machine: of what is timed 0.02 to 0.2 %.
RARELY_NS, OFTEN_NS = 10_000_000, 250_000
_NUMBERS = {"x86_64": 298, "aarch64": 241}  # of the system call perf_event_open
_ATTR_BYTES, _SOFTWARE, _CPU_CLOCK = 112, 1, 0
_IP_TID_TIME = 1 | 2 | 4
# disabled, exclude_kernel, exclude_hv, sample_id_all, use_clockid; inherit; mmap, mmap2
_FLAGS, _INHERIT, _WITH_MAPS = 1 | 1 << 5 | 1 << 6 | 1 << 18 | 1 << 25, 1 << 1, 1 << 8 | 1 << 23
_MONOTONIC, _CLOSE_ON_EXEC = 1, 8
_ENABLE, _DISABLE, _SET_OUTPUT = 0x2400, 0x2401, 0x2405
_HEAD_BYTE, _TAIL_BYTE = 1024, 1032
_LOST, _SAMPLE, _MAPPED = 2, 9, 10
_RING_PAGES, _SMALL_RING_PAGES, _MOST_RINGS = 64, 8, 2048
_ANY_CORE = -1
HINT = "it takes a kernel.perf_event_paranoid of 2 or less, and in a container the capability PERFMON"
# From here on, so that what waits by `select` for others of this process's descriptors is not shut out by as many of these.
_FIRST_DESCRIPTOR, _MOST_DESCRIPTORS = 1024, 8192
_WRITE = 2


class CoreWatch:
    """Looks at all threads of some processes, and of what they begin. `fault` says why there are none.

    `looks` and `mapped` grow with each `read`, and so do `lost`, how many of either had no room, and `unmet`, sentences on
    what the looks cannot have met. `close` it.
    """

    def __init__(self, pids: Collection[int]) -> None:
        self.fault: str | None = None
        self.looks: list[Look] = []
        self.mapped: list[Mapped] = []
        self.lost = 0
        self.unmet: list[str] = []
        self._balance = CoreBalance(pids)
        self._code = MappedCode(pids)
        self._rare: list[io.FileIO] = []
        self._frequent: list[io.FileIO] = []
        self._rings: list[_Ring] = []
        try:
            self._open(pids)
        except OSError as error:
            self.close()
            self.fault = f"the system does not allow it ({error.strerror}); {HINT}"

    @contextmanager
    def often(self) -> Iterator[None]:
        """Look so often meanwhile that calls of microseconds are met, at a few per cent of their time."""
        _tell(self._frequent, _ENABLE)
        try:
            yield
        finally:
            _tell(self._frequent, _DISABLE)

    def read(self) -> None:
        """Take over what was noted since."""
        for ring in self._rings:
            for kind, body in ring.records():
                self._note(kind, body)

    def check(self) -> None:
        """Hold what was noted so far against what the system says now of these processes: of their time, and of their code."""
        self.read()
        if self._rings and not self.unmet:
            met = Counter(look.pid for look in self.looks)
            self.unmet += [*self._balance.unmet(met), *self._code.moved(met, self.mapped)][:1]

    def close(self) -> None:
        """End all looks; what was read stays."""
        for ring in self._rings:
            ring.close()
        for event in (*self._frequent, *self._rare):
            event.close()
        self._rings, self._frequent, self._rare = [], [], []

    def _open(self, pids: Collection[int]) -> None:
        mains = [pid for pid in pids if os.path.exists(f"/proc/{pid}/task")]
        others = [int(each) for pid in mains for each in _names(f"/proc/{pid}/task") if int(each) not in mains]
        cores = sorted(os.sched_getaffinity(0))
        if not mains or len(mains) * len(cores) + len(others) > _MOST_RINGS:
            raise OSError(0, "no process to look at" if not mains else "too many threads and cores")
        allow_descriptors(_FIRST_DESCRIPTOR + _MOST_DESCRIPTORS)
        for pid in mains:
            self.mapped += code_of(pid)  # as if since ever
        # The system keeps what is looked at in new threads apart by core. Threads that are there already, of which a library
        # may have begun one for each core, are looked at alone.
        for core in cores:
            self._look_at(mains, core, _INHERIT)
        for thread in others:
            self._look_at([thread], _ANY_CORE, 0)
        _tell(self._rare, _ENABLE)

    def _look_at(self, threads: Collection[int], core: int, inherit: int) -> None:
        """Have looks at `threads` while they are on `core` noted in one ring; those that they begin too, with `inherit`."""
        ring = None
        for events, period_ns, more in ((self._rare, RARELY_NS, _WITH_MAPS), (self._frequent, OFTEN_NS, 0)):
            for thread in threads:
                event = _opened(_attributes(period_ns, inherit | more), thread, core)
                events.append(event)
                if ring is None:
                    ring = event
                    pages = _RING_PAGES if inherit else _SMALL_RING_PAGES
                    self._rings.append(_Ring(ring.fileno(), pages * mmap.PAGESIZE))
                else:
                    fcntl.ioctl(event, _SET_OUTPUT, ring.fileno())

    def _note(self, kind: int, body: bytes) -> None:
        if kind == _SAMPLE:
            address, pid, _, time_ns = struct.unpack_from("=QIIQ", body)
            self.looks.append(Look(time_ns, pid, address))
        elif kind == _MAPPED:
            pid, _, begin, length = struct.unpack_from("=IIQQ", body)
            protection, _ = struct.unpack_from("=II", body, 56)
            name = body[64:-16].split(b"\0")[0].decode(errors="replace")
            (time_ns,) = struct.unpack_from("=Q", body, len(body) - 8)
            self.mapped.append(Mapped(time_ns, pid, begin, begin + length, name, is_writable=bool(protection & _WRITE)))
        elif kind == _LOST:
            (count,) = struct.unpack_from("=Q", body, 8)
            self.lost += count


class CodeWatch:
    """Whose code the cores of a worker were at in its timed calls. It looks at no process until it `begin`s. `close` it."""

    def __init__(self) -> None:
        self._watch: CoreWatch | None = None
        self._windows: list[tuple[object, Window]] = []  # of whose calls

    def begin(self, pids: Collection[int]) -> None:
        """Look at these processes, and at what they begin, from now on."""
        self._watch = CoreWatch(pids)

    def during(self, *, is_probe: bool) -> AbstractContextManager[None]:
        """Entered while launches are made: those of a probe are looked at often."""
        return self._watch.often() if is_probe and self._watch is not None else nullcontext()

    def note(self, reference: object, calls: Iterable[tuple[int | None, float]], *, is_probe: bool) -> None:
        """Keep when `calls` of `reference` were timed: each opened at so many ns, and took so many µs."""
        if self._watch is None:
            return
        self._watch.check() if is_probe else self._watch.read()
        period_ns = OFTEN_NS if is_probe else RARELY_NS
        self._windows += [
            (reference, Window(opened_ns, opened_ns + round(time_us * 1e3), period_ns))
            for opened_ns, time_us in calls if opened_ns is not None
        ]

    def seen(self, reference: object, own_files: Collection[Path]) -> tuple[CodeSeen | None, str | None]:
        """Whose code it was in the calls of `reference`; a sentence where that was not looked at."""
        if self._watch is None:
            return None, "its device is none"
        self._watch.check()
        windows = [window for of, window in self._windows if of is reference]
        seen = code_seen(self._watch.looks, self._watch.mapped, windows, [str(each) for each in own_files])
        return replace(seen, lost=self._watch.lost, unmet=tuple(self._watch.unmet)), self._watch.fault

    def read(self) -> None:
        """Take over what was noted, while a call lasts, so that there is room for more."""
        if self._watch is not None:
            self._watch.read()

    def close(self) -> None:
        """End all looks."""
        if self._watch is not None:
            self._watch.close()


def _opened(attributes: ctypes.Array[ctypes.c_char], thread: int, core: int) -> io.FileIO:
    """A new perf event, by its descriptor. Raises OSError."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(0, f"not known on {platform.machine()}")
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    event = call(number, attributes, thread, core, -1, _CLOSE_ON_EXEC)
    if event < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    try:
        return io.FileIO(fcntl.fcntl(event, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR))
    finally:
        os.close(event)


def _tell(events: Collection[io.FileIO], what: int) -> None:
    for event in events:
        with suppress(OSError):  # its thread is gone
            fcntl.ioctl(event, what, 0)


def _attributes(period_ns: int, more: int = 0) -> ctypes.Array[ctypes.c_char]:
    """The system's `perf_event_attr` of a software clock that looks every `period_ns`."""
    body = ctypes.create_string_buffer(_ATTR_BYTES)
    struct.pack_into("=IIQQQQQ", body, 0, _SOFTWARE, _ATTR_BYTES, _CPU_CLOCK, period_ns, _IP_TID_TIME, 0, _FLAGS | more)
    struct.pack_into("=i", body, 92, _MONOTONIC)
    return body


class _Ring:
    """Memory of `size_bytes` into which the system writes records for an event, behind a page that says how far."""

    def __init__(self, event: int, size_bytes: int) -> None:
        # Python's own mapping would hold one more descriptor, which is not among the high ones.
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype, libc.munmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t]
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
        length = mmap.PAGESIZE + size_bytes
        address = libc.mmap(None, length, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, event, 0)
        if address == ctypes.c_void_p(-1).value:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
        self._size, self._memory = size_bytes, memoryview((ctypes.c_char * length).from_address(address)).cast("B")
        self.close = weakref.finalize(self, libc.munmap, address, length)

    def records(self) -> Iterator[tuple[int, bytes]]:
        """The kind and the body of each record that is new; the system hears that they were read."""
        head, tail = struct.unpack_from("=QQ", self._memory, _HEAD_BYTE)
        while tail < head:
            kind, _, count = struct.unpack("=IHH", self._cut(tail, 8))
            yield kind, self._cut(tail + 8, count - 8)
            tail += count
        struct.pack_into("=Q", self._memory, _TAIL_BYTE, tail)

    def _cut(self, offset: int, length: int) -> bytes:
        at = offset % self._size
        records = self._memory[mmap.PAGESIZE :]
        first = bytes(records[at : at + length])
        return first + bytes(records[: length - len(first)])


def _names(folder: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []
