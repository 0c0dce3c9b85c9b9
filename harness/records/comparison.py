"""Runs joined on what was asked and on each candidate's source, as values; how they are shown is `report`'s.

A ratio never sets two different kernels against each other, and never the times of two devices: each record's
speedup is over its own device's baseline, and only two runs on the same device have a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.records.runs import Run
from harness.records.schema import Record
from harness.verdict import Status

# What may differ between two runs besides the candidates; the last two only mean something within one device.
SETTINGS = (
    "problem_hash", "torch", "cuda", "driver", "harness_version", "dirty", "config", "l2_policy", "timer",
    "sandbox",
)
SAME_DEVICE_ONLY = ("uuid", "power_limit_w")


@dataclass(frozen=True)
class Row:
    """One candidate or baseline, and its record in each run; None where a run does not have it."""

    name: str
    records: tuple[Record | None, ...]


@dataclass(frozen=True)
class Unmatched:
    """A candidate name whose source is in one run only: `found` holds (run, record) of each.

    `edited` when another run has the same name with another source.
    """

    name: str
    found: tuple[tuple[int, Record], ...]
    edited: bool


@dataclass(frozen=True)
class Case:
    """One problem at one set of sizes: the runs that have it, and the rows that two of them share."""

    problem: str
    sizes: str
    dtype: str
    runs: tuple[int, ...]
    rows: tuple[Row, ...]
    unmatched: tuple[Unmatched, ...]


@dataclass(frozen=True)
class Difference:
    """A setting or version that is not the same in all runs; None where a run did not record it."""

    name: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class Change:
    """A run against an earlier one of the same device: `ratio` of the speedups, `verdict` in one word.

    The verdict is `faster` or `slower` when the two speedup intervals do not overlap, else `overlap`;
    `unknown` without intervals; `lost` when the candidate was ok and no longer is, `won` for the reverse.
    """

    ratio: float | None
    verdict: str


@dataclass(frozen=True)
class Regression:
    """A candidate that in `run` is slower or no longer ok, against `reference` on the same device."""

    name: str
    reference: int
    run: int
    change: Change
    record: Record


@dataclass(frozen=True)
class Comparison:
    """Two or more runs joined; runs are numbered by their place in `runs` everywhere."""

    runs: tuple[Run, ...]
    cases: tuple[Case, ...]
    differences: tuple[Difference, ...]

    def reference_of(self, run: int, case: Case) -> int | None:
        """The first run of the case before `run` on the same device: what changes are against, if any."""
        device = self.runs[run].device_name
        return next((old for old in case.runs if old < run and self.runs[old].device_name == device), None)

    def regressions(self) -> list[Regression]:
        """The candidates that got slower or were lost on the same device; baselines are none."""
        found = []
        for case in self.cases:
            for run in case.runs:
                reference = self.reference_of(run, case)
                for row in case.rows if reference is not None else ():
                    record = row.records[run]
                    change = change_between(row.records[reference], record)
                    if change and change.verdict in ("slower", "lost") and record.role == "candidate":
                        found.append(Regression(row.name, reference, run, change, record))
        return found


def join(runs: Sequence[Run]) -> Comparison:
    """The runs joined by (problem, sizes, dtype, mode), and in each of those by the candidates' source
    hashes.

    Baselines have no source and are joined by name; the one that the speedups are over is left out, being 1.
    """
    asked: dict[tuple[object, ...], dict[int, list[Record]]] = {}
    for number, run in enumerate(runs):
        for record in run.records:
            sizes = frozenset(record.sizes.split())
            question = (record.problem, sizes, record.dtype, record.mode or "forward")
            asked.setdefault(question, {}).setdefault(number, []).append(record)
    cases = tuple(_case(by_run, len(runs)) for by_run in asked.values())
    return Comparison(tuple(runs), cases, tuple(_differences(runs)))


def change_between(before: Record | None, now: Record | None) -> Change | None:
    """How a candidate changed between two runs on one device; None where there is nothing to set against."""
    if before is None or now is None:
        return None
    if before.status is not now.status and Status.OK in (before.status, now.status):
        return Change(None, "lost" if before.status is Status.OK else "won")
    if before.status is not Status.OK or not before.speedup or not now.speedup:
        return None
    ratio = now.speedup / before.speedup
    if None in (before.speedup_lo, before.speedup_hi, now.speedup_lo, now.speedup_hi):
        return Change(ratio, "unknown")
    if now.speedup_lo > before.speedup_hi:
        return Change(ratio, "faster")
    return Change(ratio, "slower" if now.speedup_hi < before.speedup_lo else "overlap")


def _case(by_run: dict[int, list[Record]], run_count: int) -> Case:
    cells_of: dict[tuple[str, str], dict[int, Record]] = {}
    copied = _copied_sources(by_run.values())
    for number, records in by_run.items():
        for record in records:
            by_name = record.source_hash is None or record.source_hash in copied
            key = (record.source_hash or record.role, record.candidate if by_name else "")
            cells_of.setdefault(key, {})[number] = record
    rows: list[Row] = []
    alone: dict[str, list[tuple[int, Record]]] = {}
    for cells in cells_of.values():
        first = next(iter(cells.values()))
        if _is_the_baseline(first):
            continue
        if len(cells) == 1:
            alone.setdefault(first.candidate, []).extend(cells.items())
        else:
            name = " / ".join(dict.fromkeys(record.candidate for record in cells.values()))
            rows.append(Row(name, tuple(cells.get(number) for number in range(run_count))))
    joined = {row.name for row in rows}
    unmatched = [
        Unmatched(name, tuple(found), edited=len(found) > 1 or name in joined)
        for name, found in alone.items()
    ]
    first = next(iter(by_run.values()))[0]
    return Case(
        first.problem, first.sizes, first.dtype, tuple(sorted(by_run)), tuple(sorted(rows, key=_best_first)),
        tuple(unmatched),
    )


def _copied_sources(runs: Sequence[list[Record]]) -> set[str]:
    """Sources that one run holds under several names: those are joined by name as well."""
    copied = set()
    for records in runs:
        hashes = [record.source_hash for record in records if record.source_hash is not None]
        copied |= {each for each in hashes if hashes.count(each) > 1}
    return copied


def _is_the_baseline(record: Record) -> bool:
    return record.role == "baseline" and record.candidate == (record.baseline or "eager")


def _best_first(row: Row) -> tuple[object, ...]:
    """Rows by their speedup in the first run that has one; those that have none last, by name."""
    speedups = (record.speedup for record in row.records if record is not None and record.status is Status.OK)
    speedup = next((value for value in speedups if value), None)
    return speedup is None, -(speedup or 0.0), row.name


def _differences(runs: Sequence[Run]) -> list[Difference]:
    same_device = len({run.device_name for run in runs}) < len(runs)
    found = []
    for name in SETTINGS + (SAME_DEVICE_ONLY if same_device else ()):
        recorded = [{getattr(record, name) for record in run.records} - {None} for run in runs]
        values = tuple(", ".join(sorted(map(_word, each))) or None for each in recorded)
        if len(set(values)) > 1:
            found.append(Difference(name, values))
    return found


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
