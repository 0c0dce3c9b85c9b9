"""From the events of PyTorch's profiler to what the worker says of them: which names, and for how long they ran.

The functions that read an event are taken from the C extension as this module is imported, before any candidate is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from torch._C._autograd import _KinetoEvent

_MOST_NAMES, _LONGEST_NAME = 200, 8000
_name, _start_thread_id = _KinetoEvent.name, _KinetoEvent.start_thread_id
_start_ns, _duration_ns = _KinetoEvent.start_ns, _KinetoEvent.duration_ns


class Span(NamedTuple):
    """When something ran, and in which thread of the host it began."""

    start_ns: int
    duration_ns: int
    name: str
    thread: int

    @classmethod
    def of(cls, event: Any) -> Span:
        return cls(_start_ns(event), _duration_ns(event), _name(event)[:_LONGEST_NAME], _start_thread_id(event))


def calls_of(events: Iterable[Any]) -> list[Span]:
    """What ran: operators, and marks of ours or the candidate's."""
    return [Span.of(event) for event in events]


def own_times_us(spans: Iterable[Span], mark: str = "", marked: Collection[str] = ()) -> dict[str, float]:
    """Time in µs by name, each moment counted for the innermost span of its thread alone; and for `mark` where that is
    one of `marked` right inside it.
    """
    times: dict[str, float] = {}
    around: dict[int, list[tuple[int, str]]] = {}
    for span in sorted(spans, key=lambda span: (span.start_ns, -span.duration_ns)):
        open_here = around.setdefault(span.thread, [])
        while open_here and open_here[-1][0] <= span.start_ns:
            open_here.pop()
        around_it = open_here[-1][1] if open_here else None
        name = mark if around_it == mark and span.name in marked else span.name
        if around_it is not None:
            times[around_it] -= span.duration_ns / 1e3
        times[name] = times.get(name, 0.0) + span.duration_ns / 1e3
        open_here.append((span.start_ns + span.duration_ns, name))
    return {name: max(0.0, time_us) for name, time_us in times.items()}


def operators_of(times_us: dict[str, float]) -> list[dict[str, Any]]:
    """The names that took longest, of those that are an operator's."""
    operators = {name: time_us for name, time_us in times_us.items() if "::" in name}
    longest = sorted(operators.items(), key=lambda item: -item[1])[:_MOST_NAMES]
    return [{"name": name, "us": time_us} for name, time_us in longest]
