"""Runs of different devices beside each other: speedups over each device's own baseline, shares of its own speed of
light, places among the candidates that all have. A time of one device never meets a time of another there.

Only the figures that `--show` names are divided by each other, without an interval: clocks and power limits are in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.errors import InputError
from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.results.changes import BASELINE_SOFTWARE, speedup_interval
from harness.results.joined_runs import Case, Joined, Row, best_first, is_forcible
from harness.results.record import Record
from harness.timing.stats.difference import change, geometric_mean
from harness.timing.stats.trimmed_mean import Interval


@dataclass(frozen=True)
class AcrossDevices:
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


def across_of(joined: Joined, *, force: bool = False) -> list[AcrossDevices]:
    """Every case that two devices have; of several runs on one device the newest stands for it."""
    across = []
    for case in joined.cases:
        newest: dict[tuple[object, ...], int] = {}
        for run in case.runs:
            known = newest.get(joined.runs[run].device)
            if known is None or joined.runs[run].utc >= joined.runs[known].utc:
                newest[joined.runs[run].device] = run
        if len(newest) > 1:
            across.append(_across(joined, case, sorted(newest.values()), force))
    return across


def _across(joined: Joined, case: Case, runs: list[int], force: bool) -> AcrossDevices:
    first, *others = runs
    refused: dict[int, tuple[tuple[str, str, str], ...]] = {}
    for run in others:
        # a CPU has another clock and another cache than a GPU: no two methods, but two kinds of device
        is_alike = joined.runs[run].device_kind == joined.runs[first].device_kind
        mixed = tuple(each for each in case.mixed(first, run) if is_alike or each[0] not in ("timer", "l2_policy"))
        if mixed:
            refused[run] = mixed
    kept = tuple(run for run in runs if run not in refused or (force and is_forcible(refused[run])))
    rows = tuple(row for row in case.rows if sum(row.records[run] is not None for run in kept) > 1)
    speedups = {
        row.name: {run: interval for run in kept if (interval := _ok_interval(row.records[run])) is not None}
        for row in rows if not row.is_baseline
    }
    shared = tuple(name for name, intervals in speedups.items() if len(intervals) == len(kept)) if len(kept) > 1 else ()
    means = {run: geometric_mean([speedups[name][run] for name in shared]) for run in kept} if shared else {}
    places = {}
    for run in kept:
        ordered = sorted(shared, key=lambda name: -speedups[name][run].estimate)
        places[run] = {name: place for place, name in enumerate(ordered, 1)}
    against = {run: change(means[first], means[run]) for run in kept if run != first} if means else {}
    return AcrossDevices(case, kept, rows, shared, places, means, against, refused)


def _ok_interval(record: Record | None) -> Interval | None:
    return None if record is None or record.status is not Status.OK else speedup_interval(record)


@dataclass(frozen=True)
class Figure:
    """One absolute figure: its name on the command line, its column of the record, its title, and what brings it."""

    name: str
    column: str
    title: str
    needs: str


FIGURES = {each.name: each for each in (
    Figure("time", "time_us", "time", "a row has a time where it is ok"),
    Figure("tflops", "tflops", "TFLOP/s", "the problem's YAML needs useful: {flops: …}"),
    Figure("sol", "percent_of_sol", "% SOL",
           "the problem's YAML needs useful: {flops: …, bytes: …}, and configs/gpus.yaml the card's peaks"),
    Figure("energy", "joules", "energy", "--energy in the run measures it, where the device counts energy"),
)}
CLOCKS = ("sm_mhz", "mem_mhz", "power_limit_w")


def figures_named(text: str) -> tuple[Figure, ...]:
    """Return the figures that `--show` names, in its order, each once. Raises InputError for any other name."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FIGURES:
            raise InputError(f"--show {text}: '{name}' is none of {listed(list(FIGURES))}")
    return tuple(FIGURES[name] for name in dict.fromkeys(names))


def rows_with_baseline(across: AcrossDevices) -> list[Row]:
    """Return the rows of `across` and that of what the speedups are over, where two of its runs have that."""
    over = across.case.over
    if sum(run in over for run in across.runs) < 2:
        return list(across.rows)
    last = max(max(across.runs), max(over)) + 1
    row = Row(over[min(over)].candidate, tuple(over.get(run) for run in range(last)))
    return sorted([*across.rows, row], key=best_first)


def value_of(record: Record | None, figure: Figure) -> float | None:
    """Return the figure in the unit of its column; None where the row is not ok or it was not measured."""
    return getattr(record, figure.column) if record is not None and record.status is Status.OK else None


def ratio_of(figure: Figure, one: Record | None, other: Record | None) -> float | None:
    """Return the `other` device's figure over that of `one`; None where a figure is missing or the sources differ."""
    a, b = value_of(one, figure), value_of(other, figure)
    return b / a if a and b and is_same_source(one, other) else None


def is_same_source(one: Record, other: Record) -> bool:
    """Return whether both ran the same source; a harness's baseline is the reference under that run's PyTorch."""
    if one.source_hash is None and other.source_hash is None and one.role == other.role == "baseline":
        same = all(getattr(one, name) == getattr(other, name) for name in BASELINE_SOFTWARE)
        return same and one.problem_hash is not None and one.problem_hash == other.problem_hash
    return one.source_hash is not None and one.source_hash == other.source_hash
