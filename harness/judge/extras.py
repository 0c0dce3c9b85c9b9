"""What is measured beside the ranking time when it is asked for: energy, a warm cache, calls back to back, a graph.

Each comes from calls of its own on inputs that stay the same, and the output of the last one is verified. No rank hangs
on any of it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.device.backend import Backend
from harness.judge import check
from harness.judge.launch_figures import judge_launch
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.verdict import Status
from harness.protocol.cuda_driver import DriverError
from harness.reference.reference_model import Reference

ENERGY, TIMES = "energy", "times"
WARM_CALLS = 60
_BURST_S = {TIMES: 0.2, ENERGY: 2.0}
_FEWEST_CALLS, _MOST_CALLS = 5, 200_000
# A device that had room for the launches before may have none for these: a graph has memory of its own.
_NO_ROOM = (torch.OutOfMemoryError, DriverError)
_NO_FIGURE = (Failed, KeyError, TypeError, ValueError, *_NO_ROOM)
_WRONG = (Status.INCORRECT, Status.IMPRECISE)
_SAID = {"warm": "with a warm cache", "back_to_back": "back to back", "graph": "as a CUDA graph"}


@dataclass
class Extras:
    """Medians and means of one call: times in µs, energy in J. What could not be measured is None and has a note."""

    warm_us: float | None = None
    back_to_back_us: float | None = None
    graph_us: float | None = None
    joules: float | None = None
    notes: list[str] = field(default_factory=list)
    lost: bool = False  # whether a call failed, after which nothing more is asked of the worker


def measure(
    session: Session, reference: Reference, precision_class: str, time_us: float, wanted: Collection[str]
) -> Extras:
    """Measure the `wanted` of `ENERGY` and `TIMES` for a call of about `time_us`; a failure is a note and ends it."""
    burst, backend = _Burst(session, reference, precision_class), session.backend
    extras = Extras()
    try:
        session.open(reference, 1)
    except (Failed, *_NO_ROOM) as problem:
        extras.notes.append(f"nothing was measured besides: {_words(problem)}")
        return extras
    calls = _calls(_BURST_S[TIMES], time_us)
    if TIMES in wanted:
        _times(burst, [("warm", min(WARM_CALLS, calls)), ("back_to_back", calls)], extras)
    if ENERGY in wanted and not extras.lost:
        _energy(burst, backend, calls, extras)
    if TIMES in wanted and not extras.lost and backend.limits.gates_queues:
        _times(burst, [("graph", calls)], extras)  # last: a capture that is refused may leave the process in disorder
    return extras


def _times(burst: _Burst, ways: Collection[tuple[str, int]], extras: Extras) -> None:
    for way, count in ways:
        try:
            report = burst.make(way, count)
            if "refused" in report:
                extras.notes.append(f"it cannot be captured as a CUDA graph: {str(report['refused'])[:200]}")
                continue
            if way == "warm" and report.get("hidden") is False:
                extras.notes.append(f"its calls {_SAID[way]} could not be queued ahead: that time has launch overhead in it")
            times_us = report["times_us"] if way == "warm" else [float(report["total_us"]) / count]
            setattr(extras, f"{way}_us", _positive(statistics.median(map(float, times_us))))
        except _NO_FIGURE as problem:
            extras.notes.append(f"its calls {_SAID[way]} were not timed: {_words(problem)}{_graphs_own(way, problem)}")
            extras.lost = True
            return


def _energy(burst: _Burst, backend: Backend, few: int, extras: Extras) -> None:
    """Without a time of calls in a row, `few` of them say how many are needed: the host may be the slower by far."""
    meter = backend.power_meter()
    if not meter.is_readable:
        extras.notes.append("its energy was not measured: this device has no counter of it that can be read")
        return
    try:
        in_a_row_us = extras.back_to_back_us or _in_a_row_us(burst, few)
        calls = _calls(_BURST_S[ENERGY], in_a_row_us)
        each_us = _in_a_row_us(burst, calls, meter)
    except _NO_FIGURE as problem:
        extras.notes.append(f"its energy was not measured: {_words(problem)}")
        extras.lost = True
        return
    watts = meter.watts()
    if watts is None:
        extras.notes.append("its energy was not measured: the device's counter of it moved too seldom")
        return
    extras.joules = watts * each_us / 1e6


def _in_a_row_us(burst: _Burst, calls: int, meter: AbstractContextManager[object] = nullcontext()) -> float:
    return _positive(float(burst.make("back_to_back", calls, meter)["total_us"]) / calls)


class _Burst:
    """Calls in a row in the worker, and the output of the last one held against the truth."""

    def __init__(self, session: Session, reference: Reference, precision_class: str) -> None:
        self._session, self._reference, self._class = session, reference, precision_class

    def make(self, way: str, calls: int, meter: AbstractContextManager[object] = nullcontext()) -> dict[str, Any]:
        """What the worker reports. `meter` is entered for the calls alone, not for other load. Raises Failed."""
        session, reference = self._session, self._reference
        inputs = reference.draw()
        session.backend.synchronize()
        with meter:
            report = session.repeat(inputs, way, calls)
        if "refused" not in report:
            check.decide([judge_launch(session, reference, inputs, 0, self._class)], reference, self._class)
        return report


def _calls(seconds: float, time_us: float) -> int:
    return max(_FEWEST_CALLS, min(_MOST_CALLS, math.ceil(1e6 * seconds / max(time_us, 1.0))))


def _positive(value: float) -> float:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"a time of {value!r} was reported")
    return value


def _words(problem: Exception) -> str:
    if isinstance(problem, _NO_ROOM):
        return f"this device has no room for them ({str(problem).splitlines()[0][:200]})"
    return problem.verdict.reason if isinstance(problem, Failed) else "its report could not be read"


def _graphs_own(way: str, problem: Exception) -> str:
    """What may be behind wrong values that calls outside a graph do not have."""
    if way != "graph" or not isinstance(problem, Failed) or problem.verdict.status not in _WRONG:
        return ""
    return "; a graph has only what is launched on PyTorch's current stream, and no plain <<<grid, block>>>"
