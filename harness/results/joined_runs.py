"""Runs joined on what was asked and on each candidate's source, as values; what changed is said by `changes`.

A ratio never sets two different kernels against each other unless the user joins by name, and never the times of two
devices: each record's speedup is over its own device's baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from harness.model.verdict import Status
from harness.results.record import Record
from harness.results.result_files import ResultFile

# How it was measured: two values of one of these are two methods. The accuracy rule is part of the problem's hash.
METHOD = ("problem_hash", "baseline", "baseline_hash", "timer", "l2_policy")
SOFTWARE = (
    "torch", "cuda", "driver", "harness_version", "harness_hash", "dirty", "config", "config_hash", "confidence",
    "sandbox",
)
MACHINE = ("power_limit_w",)  # means something within one device only
JOINS = ("source", "name")


@dataclass(frozen=True)
class Row:
    """One candidate or baseline, and its record in each run; None where a run does not have it."""

    name: str
    records: tuple[Record | None, ...]

    @cached_property
    def is_baseline(self) -> bool:
        return next(record for record in self.records if record is not None).role == "baseline"


@dataclass(frozen=True)
class Unmatched:
    """A candidate name whose source is in one run only: `found` holds (run, record) of each, and `edited` says whether
    another run has that name with another source.
    """

    name: str
    found: tuple[tuple[int, Record], ...]
    edited: bool


@dataclass(frozen=True)
class Case:
    """One problem at one set of sizes: the runs that have it, and the rows that two of them share.

    `methods` has for each of `runs` the values of each field of `METHOD`; `controls` its row of eager in a candidate's
    place, which should be one; `over` its row of what the speedups are over, eager's or that of a file.
    """

    problem: str
    sizes: str
    dtype: str
    mode: str
    runs: tuple[int, ...]
    rows: tuple[Row, ...]
    unmatched: tuple[Unmatched, ...]
    methods: dict[int, tuple[frozenset[str], ...]]
    controls: dict[int, Record]
    over: dict[int, Record]

    @property
    def title(self) -> str:
        mode = "" if self.mode == "forward" else self.mode
        return " · ".join(part for part in (self.problem, self.sizes, self.dtype, mode) if part)

    def mixed(self, one: int, other: int) -> list[tuple[str, str, str]]:
        """The fields of `METHOD` in which two runs are known to differ, with both values."""
        both = zip(METHOD, self.methods[one], self.methods[other])
        return [(name, ", ".join(sorted(a)), ", ".join(sorted(b))) for name, a, b in both if a and b and a != b]


@dataclass(frozen=True)
class Difference:
    """A field that is not the same in all runs of `group` (method, software or machine); None: not recorded."""

    name: str
    group: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class Joined:
    """Two or more runs joined; runs are numbered by their place in `runs` everywhere."""

    runs: tuple[ResultFile, ...]
    cases: tuple[Case, ...]
    differences: tuple[Difference, ...]


def join(runs: Sequence[ResultFile], by: str = "source") -> Joined:
    """The runs joined by (problem, sizes, dtype, mode), and in each of those by the candidates' source hashes, or by
    their names with `by` "name".

    Baselines have no source and are joined by name; the one that the speedups are over is left out, being 1.
    """
    asked: dict[tuple[object, ...], dict[int, list[Record]]] = {}
    for number, run in enumerate(runs):
        for record in run.records:
            sizes = record.sizes if " " not in record.sizes else frozenset(record.sizes.split())
            question = (record.problem, sizes, record.dtype, record.mode or "forward")
            asked.setdefault(question, {}).setdefault(number, []).append(record)
    cases = tuple(_case(by_run, len(runs), by) for by_run in asked.values())
    return Joined(tuple(runs), cases, tuple(_differences(runs)))


def _case(by_run: dict[int, list[Record]], run_count: int, by: str) -> Case:
    cells_of: dict[tuple[str, str], dict[int, Record]] = {}
    copied = copied_sources(by_run.values()) if by == "source" else set()
    for number, records in by_run.items():
        for record in records:
            by_name = by == "name" or record.source_hash is None or record.source_hash in copied
            source = record.role if by == "name" else record.source_hash or record.role
            cells_of.setdefault((source, record.candidate if by_name else ""), {})[number] = record
    rows: list[Row] = []
    alone: dict[str, list[tuple[int, Record]]] = {}
    controls: dict[int, Record] = {}
    over: dict[int, Record] = {}
    for cells in cells_of.values():
        first = next(iter(cells.values()))
        if first.role == "baseline" and first.candidate == "eager":
            controls = cells
        if first.role == "baseline" and first.candidate == (first.baseline or "eager"):
            over |= cells
        elif len(cells) == 1:
            alone.setdefault(first.candidate, []).extend(cells.items())
        else:
            name = " / ".join(dict.fromkeys(record.candidate for record in cells.values()))
            rows.append(Row(name, tuple(cells.get(number) for number in range(run_count))))
    joined = {row.name for row in rows}
    unmatched = [Unmatched(name, tuple(each), edited=len(each) > 1 or name in joined) for name, each in alone.items()]
    first = next(iter(by_run.values()))[0]
    return Case(
        first.problem, first.sizes, first.dtype, first.mode or "forward", tuple(sorted(by_run)),
        tuple(sorted(rows, key=best_first)), tuple(unmatched),
        {number: _method(records) for number, records in by_run.items()}, controls, over,
    )


def _method(records: Sequence[Record]) -> tuple[frozenset[str], ...]:
    columns = zip(METHOD, zip(*set(map(attrgetter(*METHOD), records))))
    return tuple(
        frozenset(_word(value or "none") for value in values if value is not None or name == "baseline_hash")
        for name, values in columns
    )


def is_forcible(mixed: Sequence[tuple[str, str, str]]) -> bool:
    """Return whether `--force` compares what `mixed` tells apart: speedups over two baselines are of two scales."""
    return not any(name in ("baseline", "baseline_hash") for name, _, _ in mixed)


def newest_rows(with_records: Sequence[tuple[ResultFile, Sequence[Record]]]) -> list[tuple[ResultFile, Record]]:
    """The newest row of each candidate and baseline, with its run: all of the newest run's, then those of older ones.

    `with_records` has runs from the oldest to the newest, each with its records of one problem, sizes, dtype and mode.
    Older rows count where they are of the newest run's problem and method, as far as they were measured.
    """
    newest_run, newest = with_records[-1]
    method = _method(newest)
    rows = [(newest_run, record) for record in newest]
    seen = {(record.candidate, record.role) for record in newest}
    for run, records in reversed(with_records[:-1]):
        unseen = [each for each in records if (each.candidate, each.role) not in seen]
        alike = [each for each in unseen if all(not a or not b or a <= b for a, b in zip(_method([each]), method))]
        rows += [(run, record) for record in alike]
        seen |= {(record.candidate, record.role) for record in alike}
    return rows


def copied_sources(runs: Iterable[Sequence[Record]]) -> set[str]:
    """Sources that one run holds under several names: those are joined by name as well."""
    copied: set[str] = set()
    for records in runs:
        seen: set[str] = set()
        for each in records:
            if each.source_hash is not None:
                (copied if each.source_hash in seen else seen).add(each.source_hash)
    return copied


def best_first(row: Row) -> tuple[object, ...]:
    """Rows by their speedup in the first run that has one; those that have none last, by name."""
    speedups = (record.speedup for record in row.records if record is not None and record.status is Status.OK)
    speedup = next((value for value in speedups if value), None)
    return speedup is None, -(speedup or 0.0), row.name


def _differences(runs: Sequence[ResultFile]) -> list[Difference]:
    same_device = len({run.device for run in runs}) < len(runs)
    # a problem's hash is its own in every problem: its case says when it differs
    groups = [("method", METHOD[1:]), ("software", SOFTWARE), ("machine", MACHINE if same_device else ())]
    names = [(group, name) for group, members in groups for name in members]
    values_of = attrgetter(*(name for _, name in names))
    recorded = [[set(values) - {None} for values in zip(*set(map(values_of, run.records)))] for run in runs]
    differences = []
    for place, (group, name) in enumerate(names):
        values = tuple(", ".join(sorted(map(_word, each[place]))) or None for each in recorded)
        if len(set(values)) > 1 and not (name.endswith("_hash") and None in values):  # older rows have no such hashes
            differences.append(Difference(name, group, values))
    return differences


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
