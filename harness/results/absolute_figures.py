"""Absolute figures of one case on several devices: what `--show` may name, and when two devices have a ratio.

A ratio of absolute figures has no interval: the clocks and the power limit of two cards are part of it. The drawing is
`report.figure_table`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.errors import InputError
from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.results.across_devices import Across
from harness.results.changes import BASELINE_SOFTWARE
from harness.results.joined_runs import Row, best_first
from harness.results.record import Record


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


def rows_with_baseline(across: Across) -> list[Row]:
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
    """Return whether both ran the same source; a harness's baseline is the problem's reference under its own PyTorch."""
    if one.source_hash is None and other.source_hash is None and one.role == other.role == "baseline":
        same = all(getattr(one, name) == getattr(other, name) for name in BASELINE_SOFTWARE)
        return same and one.problem_hash is not None and one.problem_hash == other.problem_hash
    return one.source_hash is not None and one.source_hash == other.source_hash
