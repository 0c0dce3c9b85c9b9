"""What a worker's recorder wrote of some launches, and the timed windows in it: all of it is there in its order, or nothing
is proven.

The records are raw ones of CUPTI's. What holds them together: they are numbered; each call that launches a kernel was
counted where CUPTI calls back, and has its kernel, as each kernel has its call; and each launch comes with the harness's own
kernels in their order, the two markers under names drawn for the worker. Whose kernels they are is `kernel_ownership`'s to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from harness.attribution.demangling import demangled_names
from harness.attribution.kernel_names import is_copy
from harness.attribution.kernel_ownership import Span
from harness.protocol.markers import Markers
from harness.protocol.recorder import COPY, FILL, FROM_HOST, GRAPH_LAUNCH, KERNEL, LAUNCH, RECORD, TO_HOST, WORD_BYTES

# The harness's own kernels of each launch, from its turn to where its window opens.
_STEPS = ("await_word", "apply_mask", "write_over", "add_up")
_ASIDE, _ASIDE_US = "step_aside", 5.0  # an empty kernel, which takes no longer
_WORD = 1 << 32
# A copy to another order reads and writes what a fill writes, in pieces at worst. Each fill is 2 µs of start before that.
_COPY_US, _COPY_TO_FILL, _FILL_US = 5.0, 16.0, 2.0
_HALF_NS_US = 0.5e-3  # times are whole ns, and sums of them in µs are not quite
_DRIVERS = {COPY: "Memcpy", FILL: "Memset"}  # as `kernel_ownership` knows them
_WAYS = {**dict.fromkeys(FROM_HOST, " HtoD"), **dict.fromkeys(TO_HOST, " DtoH")}


class Unproven(Exception):
    """Raised when a recording does not show all that ran; the message ends a sentence that begins with its launches."""


class Ran(NamedTuple):
    """A kernel, copy or fill as it ran on the device."""

    kind: int
    correlation: int
    start_ns: int
    end_ns: int
    name: str
    stream: int = 0
    graph: int = 0
    bytes: int = 0  # that were copied or filled


class Call(NamedTuple):
    """A call that launched a kernel or a graph: its number, and the driver's call within; a kernel bears either."""

    number: int
    within: int = 0
    is_graph: bool = False


@dataclass(frozen=True)
class Recording:
    """What ran, by when it began, and the calls that launched it. `fault` says why there is none, where there is none."""

    ran: Sequence[Ran] = ()
    calls: Sequence[Call] = ()
    fault: str | None = None


@dataclass(frozen=True)
class Window:
    """One timed window: how long it was open in µs, what ran meanwhile, from its opening on, what ran between it and
    the next launch and is none of the harness's steps, and what ran so from its turn to its opening. `copied_bytes` and
    `filled_bytes` were copied and filled behind it; it `has_copy_kernel` where PyTorch's kernel that copies ran there.
    `most_copy_us` is how long such kernels of the harness's may take, for all outputs: they are told by their name alone.
    `other_streams` had a part in what ran meanwhile, beside that of the markers.
    """

    open_us: float
    spans: tuple[Span, ...]
    late: tuple[Span, ...] = ()
    early: tuple[Span, ...] = ()
    copied_bytes: int = 0
    filled_bytes: int = 0
    has_copy_kernel: bool = False
    most_copy_us: float = _COPY_US
    other_streams: int = 0

    @property
    def stretches_us(self) -> list[float]:
        """How long the GPU worked each time that it did: as often as there are kernels, where they run one after another."""
        stretches: list[list[float]] = []
        for span in sorted(self.spans, key=lambda span: span.start_us):
            ends_us = span.start_us + span.time_us
            if stretches and span.start_us < stretches[-1][1] - _HALF_NS_US:
                stretches[-1][1] = max(stretches[-1][1], ends_us)
            else:
                stretches.append([span.start_us, ends_us])
        return [ends_us - start_us for start_us, ends_us in stretches]


def read_records(content: bytes, count: int) -> Recording:
    """The recording in the bytes of `count` records. Raises Unproven where they are not all there."""
    ran, calls, at = [], [], 0
    for number in range(count):
        if at + RECORD.size > len(content):
            raise Unproven("the listing is cut off")
        record_number, kind, correlation, stream, start_ns, end_ns, low, high, _, way, *_, graph, length = RECORD.unpack_from(content, at)
        name = content[at + RECORD.size : at + RECORD.size + length]
        at += RECORD.size + -(-length // WORD_BYTES) * WORD_BYTES
        if record_number != number or len(name) != length:
            raise Unproven("the records are not numbered one after the other")
        if kind in (LAUNCH, GRAPH_LAUNCH):
            calls.append(Call(correlation, graph, kind == GRAPH_LAUNCH))
        elif kind in (KERNEL, COPY, FILL) and start_ns <= end_ns:
            text = _DRIVERS.get(kind) or name.decode(errors="replace")
            text += _WAYS.get(way, "") if kind == COPY else ""
            moved_bytes = 0 if kind == KERNEL else (low % _WORD) + (high % _WORD) * _WORD
            ran.append(Ran(kind, correlation, start_ns, end_ns, text, stream, graph, moved_bytes))
        else:
            raise Unproven("a record is none")
    if at != len(content):
        raise Unproven("something follows the last record")
    return Recording(sorted(ran, key=lambda each: (each.start_ns, each.end_ns)), calls)


def windows(recording: Recording, markers: Markers, count: int) -> list[Window]:
    """The timed windows of `count` launches, with their kernels' C++ names. Raises Unproven."""
    if recording.fault is not None:
        raise Unproven(recording.fault)
    _check_calls(recording)
    places = list(_places(recording.ran, markers))
    if len(places) != count:
        raise Unproven(f"{len(places)} of {count} windows are in the listing")
    names = demangled_names({each.name for each in recording.ran if each.kind == KERNEL})
    if any(name.startswith(tuple(_DRIVERS.values())) for name in names.values()):
        raise Unproven("a kernel is called what the driver's copies and fills are")
    return [_window(recording.ran, place, names) for place in places]


def _check_calls(recording: Recording) -> None:
    """Each call has its kernel, and each kernel its call. Raises Unproven."""
    kernels = Counter(each.correlation for each in recording.ran if each.kind == KERNEL)
    made = [kernels.pop(call.number, 0) + (kernels.pop(call.within, 0) if call.within else 0) for call in recording.calls]
    if 0 in made:
        raise Unproven(f"{made.count(0)} calls launched kernels that are not in the listing")
    if kernels or any(count > 1 and not call.is_graph for count, call in zip(made, recording.calls)):
        raise Unproven("kernels are in the listing that no call launched")


class _Place(NamedTuple):
    """When the turn of a launch came, the markers that opened and closed its window, and when the launch after it began."""

    turn_ns: int
    opened: Ran
    closed: Ran
    end_ns: int


def _places(ran: Sequence[Ran], markers: Markers) -> Iterator[_Place]:
    """Where each window lies. Raises Unproven where the harness's own kernels are not in their order."""
    steps: list[str] = []
    turn_ns = 0
    opened: Ran | None = None
    closed: tuple[int, Ran, Ran] | None = None
    for each in ran:
        if each.kind != KERNEL:
            continue
        if opened is not None:  # what is called as a step of the harness's is the candidate's here
            if each.name == markers.opens:
                raise Unproven("a window opens within another")
            if each.name == markers.closes:
                closed, opened = (turn_ns, opened, each), None
        elif each.name in _STEPS:
            if each.name == _STEPS[0] and closed is not None:
                yield _Place(*closed, each.start_ns)
                closed = None
            turn_ns = each.end_ns if each.name == _STEPS[0] else turn_ns
            steps.append(each.name)
        elif each.name == markers.opens:
            if tuple(steps) != _STEPS:
                raise Unproven("the harness's own kernels before a window are not all in the listing")
            steps, opened = [], each
        elif each.name == markers.closes:
            raise Unproven("a window closes that never opened")
    if opened is not None or steps:
        raise Unproven("the last window does not close")
    if closed is not None:
        yield _Place(*closed, ran[-1].end_ns + 1)


def _window(ran: Sequence[Ran], place: _Place, names: dict[str, str]) -> Window:
    turn_ns, opened, closed, end_ns = place

    def spans(start_ns: int, until_ns: int, is_in: Callable[[Ran], bool]) -> tuple[Span, ...]:
        return tuple(
            Span(
                names.get(each.name, each.name), (max(each.start_ns, start_ns) - opened.end_ns) / 1e3,
                (each.end_ns - max(each.start_ns, start_ns)) / 1e3,
            )
            for each in ran if each not in (opened, closed) and is_in(each) and each.end_ns > start_ns and each.start_ns < until_ns
        )

    behind = [each for each in ran if closed.end_ns <= each.start_ns < end_ns]
    fills = [each for each in behind if each.kind == FILL]
    copy_kernels = [each for each in behind if each.kind == KERNEL and is_copy(each.name)]
    most_copy_us = sum(_COPY_US + _COPY_TO_FILL * max(0.0, _time_us(each) - _FILL_US) for each in fills)
    if sum(map(_time_us, copy_kernels)) > most_copy_us:
        copy_kernels = []
    streams = {each.stream for each in ran if each.end_ns > opened.end_ns and each.start_ns < closed.start_ns}
    inside = spans(opened.end_ns, closed.start_ns, lambda each: True)
    late = spans(
        closed.end_ns, end_ns,
        lambda each: each.start_ns >= closed.start_ns and each.kind == KERNEL and each.name not in (*_STEPS, _ASIDE)
        and each not in copy_kernels,
    )
    early = spans(
        turn_ns, opened.end_ns,
        lambda each: each.kind in (KERNEL, COPY) and each.name not in _STEPS
        and not (each.name == _ASIDE and each.end_ns - each.start_ns <= 1e3 * _ASIDE_US),
    )
    return Window(
        (closed.start_ns - opened.end_ns) / 1e3, inside, late, early, sum(each.bytes for each in behind if each.kind == COPY),
        sum(each.bytes for each in fills), bool(copy_kernels), most_copy_us, len(streams - {opened.stream, closed.stream}),
    )


def _time_us(ran: Ran) -> float:
    return (ran.end_ns - ran.start_ns) / 1e3
