"""The conversation of one queue of launches: turns answered, frames awaited, time kept by the judge's own clock.

A queue may be gated: its first turn is then answered only once the worker says that all its launches are queued, or
when patience ends, because a candidate that synchronises inside `forward` can queue nothing ahead.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.attribution.recording import Recording
from harness.device.backend import Backend, CacheFlushed, LaunchReached
from harness.launch import failures
from harness.model.verdict import ReasonCode, Status
from harness.protocol.frames import BadFrame, Channel, ChannelClosed, FrameTimeout, whole_number

# A queue that is not full by then belongs to a candidate that synchronises inside forward.
GATE_PATIENCE_S = 0.4
LATE = "its queue was not full in time"  # of one that was then let go
_POLL_S = 0.05
# Of the launches of a segment whose flush and output are looked at, so many: each look takes milliseconds.
_INSPECTED = 8
_MOST_BYTES = 1 << 48
_MOST_MICROSECONDS = 1e15  # thirty years
_DRAWN = secrets.SystemRandom()


@dataclass(frozen=True)
class Launch:
    """One launch as reported, with the judge's clock: µs from letting it go to the turn after it.

    `window_us` is how much of that passed from the opening of the timed window on, `flush_us` how much before; the latter is
    None on a GPU, where something of the host's is in it. `beyond` is (bytes written, bytes guarded) where something was written behind an output, `forward_us` the
    forward pass where a backward pass followed. `reordered` is whether the outputs lay in another order than the reference's, to
    which nothing was copied within the window. `opened_ns` is when the window was opened, by the monotonic clock.
    """

    time_us: float
    host_us: float
    wall_us: float | None
    fault: dict[str, Any] | None
    values: list[Any]
    beyond: tuple[int, int] | None = None
    forward_us: float | None = None
    flush_us: float | None = None
    window_us: float | None = None
    reordered: bool = False
    opened_ns: int | None = None


@dataclass(frozen=True)
class Launches:
    """What `launch` returns. `hidden` is None unless the queue was to be gated.

    `inputs_kept` says of each launch whether its slot held the inputs unchanged afterwards. `tail_us` is what the
    judge's clock saw between the end of the last launch and the report. `recording` is what ran on a GPU, where that
    was asked for.
    """

    launches: list[Launch]
    end_to_end_us: float
    hidden: bool | None
    inputs_kept: Sequence[bool]
    tail_us: float | None = None
    recording: Recording | None = None


@dataclass(frozen=True)
class Words:
    """What is said of a queue that ends badly: it died while `dying`, raised `raising`, was slow in `called`."""

    dying: str
    raising: str
    called: str


FORWARD = Words("running forward", "in forward", "forward")
EAGER_IN_WORKER = Words("eager was timed in it", "while eager was timed in its process", "eager in its process")


class LaunchConversation:
    """The conversation of one `launch` or `profile`: turns answered, frames awaited, time kept."""

    def __init__(
        self, backend: Backend, channel: Channel, first: int, count: int, gate: bool, limit_s: float,
        death: Callable[[str], failures.Failed], early_s: float = 0.0, inspect: bool = False, words: Words = FORWARD,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self._while_waiting = while_waiting
        self._backend, self._channel, self._death, self._words = backend, channel, death, words
        self._first, self._count, self._gate, self._limit_s = first, count, gate, limit_s
        self._early_s = early_s
        self._inspected = set(_DRAWN.sample(range(count), min(count, _INSPECTED))) if inspect else set()
        self._gone_ns: list[int | None] = [None] * count
        self._opened_ns: list[int | None] = [None] * count
        self._reached_ns: list[int | None] = [None] * (count + 1)
        self._replied_ns = 0
        self._reached = -1
        self._flushed = -1
        self._queued = False
        self._gate_waits = self._drained = False
        self.hidden: bool | None = None

    def conduct(self, command: dict[str, Any], meanwhile: Callable[[], None] | None = None) -> dict[str, Any]:
        """Send `command` and see it through; returns the report. Raises Failed. `meanwhile` is called once it is sent:
        of a queue that is gated the worker makes the launches then, and none of them runs.
        """
        backend, channel = self._backend, self._channel
        try:
            channel.send(command, 5.0)
        except FrameTimeout:
            raise self._too_slow() from None
        except ChannelClosed:
            raise self._death(self._words.dying) from None
        if meanwhile is not None:
            meanwhile()
        deadline = time.monotonic() + self._limit_s
        try:
            began = time.monotonic()
            while True:
                event = backend.poll(channel, _POLL_S)
                if isinstance(event, LaunchReached):
                    self._on_reached(event)
                elif isinstance(event, CacheFlushed):
                    self._on_flushed(event)
                elif event is not None:
                    reply = self._on_frame(event)
                    if reply is not None:
                        self._replied_ns = time.perf_counter_ns()
                        return reply
                else:
                    self._while_waiting()
                if self._gate_waits and time.monotonic() - began > GATE_PATIENCE_S:
                    self.hidden = False
                    self._release(0)
                if time.monotonic() > deadline:
                    raise self._too_slow()
        except FrameTimeout:
            raise self._too_slow() from None
        except ChannelClosed:
            raise self._death(self._words.dying) from None
        except BadFrame as error:
            raise failures.protocol(str(error)) from None

    def read(self, reply: dict[str, Any], inputs_kept: Sequence[bool]) -> Launches:
        """Check and convert the report of the launches. Raises Failed."""
        try:
            reports = reply.get("launched")
            if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
                raise BadFrame("no launches reported")
            for index, report in enumerate(reports):
                if "raised" in report:
                    failure = failures.from_exception(report["raised"], self._words.raising)
                    failure.launch = min(index, self._count - 1)
                    raise failure
            if self._drained:
                raise BadFrame("a queue that was cut short is reported whole")
            if len(reports) != self._count:
                raise BadFrame(f"{len(reports)} launches reported where {self._count} were asked for")
            launches = [self._launch(index, report) for index, report in enumerate(reports)]
            end_to_end_us = _microseconds(reply, "end_to_end_us")
        except BadFrame as error:
            raise failures.protocol(str(error)) from None
        tail_us = _us_between(self._reached_ns[self._count], self._replied_ns)
        return Launches(launches, end_to_end_us, self.hidden if self._gate else None, inputs_kept, tail_us)

    def _launch(self, index: int, report: dict[str, Any]) -> Launch:
        fault = report.get("fault")
        if fault is not None and not isinstance(fault, dict):
            raise BadFrame("a launch reported a fault that is none")
        gone_ns, opened_ns, ended_ns = self._gone_ns[index], self._opened_ns[index], self._reached_ns[index + 1]
        if gone_ns is None:
            raise BadFrame("a launch was reported whose turn never came")
        wall_us = _us_between(gone_ns, ended_ns)
        values = report.get("values", [])
        if not isinstance(values, list):
            raise BadFrame("a launch reported values that are no list")
        if fault is not None:
            return Launch(0.0, 0.0, wall_us, fault, values)
        times_us = _microseconds(report, "time_us"), _microseconds(report, "host_us")
        forward_us = _microseconds(report, "forward_us") if "forward_us" in report else None
        flush_us = None if self._backend.limits.gates_queues else _us_between(gone_ns, opened_ns)
        return Launch(
            *times_us, wall_us, None, values, _beyond(report), forward_us, flush_us, _us_between(opened_ns, ended_ns),
            report.get("reordered") is True, opened_ns,
        )

    def _on_reached(self, turn: LaunchReached) -> None:
        index = turn.sequence - self._first
        if index == -1:
            return  # the end of the queue before, seen late: its report had already come
        if index not in (self._reached + 1, self._count) or index <= self._reached:
            raise BadFrame(f"turn {turn.sequence} is not the next of this queue")
        if self._flushed < self._reached and not self._drained:
            raise _not_flushed("nothing was said of it")
        self._reached = index
        self._reached_ns[index] = time.perf_counter_ns()
        if index - 1 in self._inspected:
            self._backend.snapshot(index - 1)
        if index == self._count:
            return
        if index == 0 and self._gate and self._backend.limits.gates_queues:
            if not self._queued:
                self._gate_waits = True
                return
            self.hidden = True
        self._release(index)

    def _on_flushed(self, flushed: CacheFlushed) -> None:
        """Look whether it is so, and let the timed window open."""
        index = flushed.sequence - self._first
        if self._drained:
            return
        if index != self._reached or index == self._flushed or not 0 <= index < self._count:
            raise BadFrame(f"launch {flushed.sequence} is not the one whose cache was to be made cold")
        fault = self._backend.flush_fault(index, inspect=index in self._inspected)
        if fault is not None:
            raise _not_flushed(fault)
        self._flushed = index
        if self._early_s:
            time.sleep(self._early_s)
        self._backend.open_window(flushed.sequence, index)
        self._opened_ns[index] = time.perf_counter_ns()

    def _on_frame(self, frame: dict[str, Any]) -> dict[str, Any] | None:
        if "queued" in frame:
            self._queued = True
            if self._gate_waits:
                self.hidden = True
                self._release(0)
            if whole_number(frame, "queued") != self._count:
                self._drained = True
                self._backend.release_all(self._channel, self._first + self._count)
            return None
        if "broken" in frame:
            raise failures.from_exception(frame["broken"], self._words.raising)
        return frame

    def _release(self, index: int) -> None:
        self._gate_waits = False
        self._gone_ns[index] = time.perf_counter_ns()
        self._backend.release(self._channel, self._first + index, index)

    def _too_slow(self) -> failures.Failed:
        calls = f"{'one call' if self._count == 1 else f'{self._count} calls'} of {self._words.called}"
        return failures.failed(
            Status.TIMED_OUT, ReasonCode.LAUNCH_TIMEOUT, f"{calls} did not end within {self._limit_s:g} s"
        )


def _us_between(began_ns: int | None, ended_ns: int | None) -> float | None:
    return None if began_ns is None or ended_ns is None else (ended_ns - began_ns) / 1e3


def _not_flushed(fault: str) -> failures.Failed:
    return failures.failed(
        Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
        f"the cache was not made cold before its timed window: {fault}; that step of the harness was left out or cut "
        "short",
    )


def _microseconds(report: dict[str, Any], key: str) -> float:
    """A time as a worker reports it. Raises BadFrame for anything but a positive, finite number."""
    value = report.get(key)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _MOST_MICROSECONDS
    if not is_number or not value > 0:
        raise BadFrame(f"{key!r} of a launch is no time")
    return float(value)


def _beyond(report: dict[str, Any]) -> tuple[int, int] | None:
    """The bytes written behind an output, and those guarded, if a worker reports any. Raises BadFrame for what is none."""
    beyond = report.get("beyond")
    if beyond is None:
        return None
    if not isinstance(beyond, list) or len(beyond) != 2 or not all(map(_is_size, beyond)):
        raise BadFrame("a number of bytes was reported that is none")
    return beyond[0], beyond[1]


def _is_size(value: Any) -> bool:
    """Whether `value` is a number of bytes that a memory may have: it stands in a reason."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_BYTES
