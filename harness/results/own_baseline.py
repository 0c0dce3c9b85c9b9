"""Speedups over a user's own baseline, derived on records: every row is timed against strict eager, and so is it.

An untrusted file is never timed in the judge's process, where eager is. The quotient of two speedups over eager, both
measured in the same run, is the speedup of one over the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from harness.model.candidate import OwnBaseline
from harness.model.errors import HarnessError, InputError, NothingToRun
from harness.model.verdict import WANT_ANOTHER_DEVICE, Status
from harness.results.record import Record
from harness.timing.stats.difference import change
from harness.timing.stats.trimmed_mean import Interval
from harness.timing.stats.words import speedup_word

# What is told of eager in those columns is not true of another baseline.
_OF_EAGER = (
    "speedup", "speedup_lo", "speedup_hi", "call", "baseline_us", "baseline_inside_us", "baseline_mean_us",
    "baseline_processes", "baseline_forward_us", "baseline_backward_us",
)
# What a candidate could be charged with, and neither this machine nor this software.
_NOT_THE_FILES = {Status.UNSURE, *WANT_ANOTHER_DEVICE}


def over_own_baseline(
    record: Record, baseline: OwnBaseline, judged: Record | None, control_apart: float = 0.0
) -> Record:
    """Return `record`, whose speedup is over eager, with that over `baseline`; the one over eager is kept beside it.

    `judged` is the baseline's own row, already returned from here, None where there is none. With S the speedups over
    eager, the speedup is S(row) / S(baseline). Its interval adds the squares of the two distances in log space, as
    variances of independent log-ratios add (`timing.stats.difference.change` names the sources). What both owe to the
    same eager leaves the quotient, so the interval is rather too wide than too narrow. Its confidence is that of the
    two. Nothing is FASTER or SLOWER by less than `control_apart`, as over eager.
    A row has no speedup over a baseline that is not ok, and a note says so; the baseline has none over itself.
    """
    moved = replace(
        record, baseline=baseline.name, baseline_hash=baseline.source_hash, **dict.fromkeys(_OF_EAGER),
        eager_us=record.baseline_us, eager_speedup=record.speedup, eager_speedup_lo=record.speedup_lo,
        eager_speedup_hi=record.speedup_hi,
    )
    if is_own_baseline(record):
        return moved
    if judged is not None and judged.status is not Status.OK:
        return moved.warned(f"no speedup over {baseline.name}: that baseline is {judged.status.value}")
    row, its = speedup_over_eager(moved), speedup_over_eager(judged) if judged is not None else None
    if row is None or its is None:
        return moved
    speedup = change(its, row)
    return replace(
        moved, speedup=speedup.estimate, speedup_lo=speedup.lo, speedup_hi=speedup.hi,
        call=speedup_word(speedup, min(record.time_us, judged.time_us), control_apart), baseline_us=judged.time_us,
        baseline_forward_us=judged.forward_us, baseline_backward_us=judged.backward_us,
    )


class RowsOverBaseline:
    """Rows on their way to where records go, over the user's `baseline` if there is one: eager's waits for that."""

    def __init__(self, baseline: OwnBaseline | None) -> None:
        self._baseline = baseline
        self._judged: Record | None = None  # the baseline's own row
        self._waiting: list[tuple[Record, dict[str, Any]]] = []

    @property
    def is_unsure(self) -> bool:
        """Whether the baseline's row is in doubt."""
        return self._judged is not None and self._judged.status is Status.UNSURE

    def add(self, record: Record, samples: dict[str, Any], *, is_own: bool) -> None:
        """Take a row and its raw samples; `is_own` where it is the baseline's."""
        self._waiting.append((record, samples))
        if is_own and self._baseline is not None:
            self._judged = over_own_baseline(record, self._baseline, None)

    def taken(self, control_apart: float) -> Iterator[tuple[Record, dict[str, Any]]]:
        """Each that waits, with its speedup over the baseline; it waits no more."""
        waiting, self._waiting = self._waiting, []
        for record, samples in waiting:
            if self._baseline is not None:
                record = over_own_baseline(record, self._baseline, self._judged, control_apart)
            yield record, samples


def is_own_baseline(record: Record) -> bool:
    """Return whether the row is that of a file in eager's place; the harness's own baselines have no source."""
    return record.role == "baseline" and record.source_hash is not None


def speedup_over_eager(record: Record) -> Interval | None:
    """Return the speedup over strict eager, whatever `speedup` is over; None where one of its figures is missing."""
    name = "speedup" if record.baseline_hash is None else "eager_speedup"
    figures = [getattr(record, f"{name}{end}") for end in ("", "_lo", "_hi")]
    if not all(figures) or min(figures) <= 0:
        return None
    return Interval(figures[0], min(figures[:2]), max(figures[0], figures[2]))


def fault_of(records: Iterable[Record]) -> HarnessError | None:
    """Return what is said of a baseline of one's own that is not ok, with its exit code; None where all are. It is 2
    for what is the file's fault, and 4 where it could not be run or measured here.
    """
    bad = next((each for each in records if is_own_baseline(each) and each.status is not Status.OK), None)
    if bad is None:
        return None
    reason = (bad.reason or "no reason was recorded").strip().splitlines()[0]
    sentence = f"the baseline {bad.candidate} is {bad.status.value}, so no row has a speedup over it: {reason}"
    if bad.status is Status.HARNESS_ERROR:
        return HarnessError(sentence)
    return NothingToRun(sentence) if bad.status in _NOT_THE_FILES else InputError(sentence)
