"""Runs of different devices beside each other: speedups over each device's own baseline, shares of its own speed of
light, places among the candidates that all have. A time of one device never meets a time of another here.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.verdict import Status
from harness.results.changes import speedup_interval
from harness.results.joined_runs import Case, Joined, Row, is_forcible
from harness.results.record import Record
from harness.timing.stats.difference import change, geometric_mean
from harness.timing.stats.trimmed_mean import Interval


@dataclass(frozen=True)
class Across:
    """One case on the newest run of each of several devices.

    `places[run]` maps the name of a row to its place by speedup among the `shared` rows, the candidates that are ok
    with an interval in all the runs; `means` are the geometric means over those, `against` each mean over the first
    run's. `refused` are the runs whose method is not the first one's, with what differs.
    """

    case: Case
    runs: tuple[int, ...]
    rows: tuple[Row, ...]
    shared: tuple[str, ...]
    places: dict[int, dict[str, int]]
    means: dict[int, Interval]
    against: dict[int, Interval]
    refused: dict[int, tuple[tuple[str, str, str], ...]]

    @property
    def moved(self) -> list[str]:
        """The shared rows whose place is not the same on all devices."""
        return [name for name in self.shared if len({self.places[run][name] for run in self.runs}) > 1]


def across_of(joined: Joined, *, force: bool = False) -> list[Across]:
    """Every case that two devices have; of several runs on one device the newest stands for it."""
    found = []
    for case in joined.cases:
        newest: dict[tuple[object, ...], int] = {}
        for run in case.runs:
            known = newest.get(joined.runs[run].device)
            if known is None or joined.runs[run].utc >= joined.runs[known].utc:
                newest[joined.runs[run].device] = run
        if len(newest) > 1:
            found.append(_across(joined, case, sorted(newest.values()), force))
    return found


def _across(joined: Joined, case: Case, runs: list[int], force: bool) -> Across:
    first, *others = runs
    refused: dict[int, tuple[tuple[str, str, str], ...]] = {}
    for run in others:
        mixed = case.mixed(first, run)
        if joined.runs[run].device_kind != joined.runs[first].device_kind:
            # a CPU has another clock and another cache than a GPU: no two methods, but two kinds of device
            mixed = [each for each in mixed if each[0] not in ("timer", "l2_policy")]
        if mixed:
            refused[run] = tuple(mixed)
    kept = tuple(run for run in runs if run not in refused or (force and is_forcible(refused[run])))
    rows = tuple(row for row in case.rows if sum(row.records[run] is not None for run in kept) > 1)
    speedups = {
        row.name: {run: interval for run in kept if (interval := _ok_interval(row.records[run])) is not None}
        for row in rows if not row.is_baseline
    }
    shared = tuple(name for name, found in speedups.items() if len(found) == len(kept)) if len(kept) > 1 else ()
    means = {run: geometric_mean([speedups[name][run] for name in shared]) for run in kept} if shared else {}
    return Across(
        case, kept, rows, shared, {run: _places(speedups, shared, run) for run in kept}, means,
        {run: change(means[first], means[run]) for run in kept if run != first} if means else {}, refused,
    )


def _ok_interval(record: Record | None) -> Interval | None:
    return None if record is None or record.status is not Status.OK else speedup_interval(record)


def _places(speedups: dict[str, dict[int, Interval]], shared: tuple[str, ...], run: int) -> dict[str, int]:
    ordered = sorted(shared, key=lambda name: -speedups[name][run].estimate)
    return {name: place for place, name in enumerate(ordered, 1)}
