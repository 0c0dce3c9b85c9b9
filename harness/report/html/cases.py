"""Runs sorted into what the page is made of: problems, in each its cases, in each its entries with their history.

A case is one problem at one set of sizes on one device. Its table is its newest run's; older runs are history, and
names that only they have are listed apart, for ranks of two runs do not mix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.records.ranking import grouped
from harness.records.runs import Run
from harness.records.schema import Record
from harness.report.html.samples import Samples, read_samples
from harness.report.html.sources import Source

Question = tuple[str, str, str]  # problem, dtype, mode


@dataclass(frozen=True)
class Entry:
    """One row of a case: `label` is its name, made unique within the case; `history` from the oldest to this one."""

    anchor: str
    label: str
    record: Record
    samples: Samples
    source: Source | None
    history: tuple[Record, ...]


@dataclass(frozen=True)
class Case:
    """One problem at one set of sizes on one device, with the entries of its newest run in the table's order."""

    anchor: str
    device: str
    sizes: str
    run: Run
    runs: int
    entries: tuple[Entry, ...]
    gone: tuple[Record, ...]

    @property
    def records(self) -> list[Record]:
        return [entry.record for entry in self.entries]

    @property
    def first(self) -> Record:
        return self.entries[0].record

    @property
    def best(self) -> Entry | None:
        """The entry that is ranked first, if any is."""
        return next((entry for entry in self.entries if entry.record.rank == 1), None)


@dataclass(frozen=True)
class Problem:
    """One problem in one dtype and mode, with a case for each device and set of sizes, GPUs first."""

    anchor: str
    name: str
    dtype: str
    mode: str
    cases: tuple[Case, ...]

    @property
    def sizes_differ(self) -> bool:
        return len({frozenset(case.sizes.split()) for case in self.cases}) > 1


def problems_of(
    runs: Sequence[Run], sources: Mapping[str, Source], note: Callable[[str], None] = lambda text: None
) -> list[Problem]:
    """The runs, given from the oldest to the newest, as problems sorted by name."""
    by_question: dict[Question, dict[tuple[str, frozenset[str]], list[tuple[Run, list[Record]]]]] = {}
    for run in runs:
        for group in grouped(run.records):
            first = group[0]
            question = (first.problem, first.dtype, first.mode or "forward")
            place = (device_of(first, run), frozenset(first.sizes.split()))
            by_question.setdefault(question, {}).setdefault(place, []).append((run, group))
    found = []
    for number, (question, places) in enumerate(sorted(by_question.items()), start=1):
        cases = [
            _case(f"p{number}c{position}", device, played, sources, note)
            for position, ((device, _), played) in enumerate(sorted(places.items(), key=_gpus_first), start=1)
        ]
        found.append(Problem(f"p{number}", *question, tuple(cases)))
    return found


def device_of(record: Record, run: Run) -> str:
    return record.device_name or record.device_kind or run.path.parent.name


def _gpus_first(item: tuple[tuple[str, frozenset[str]], list[tuple[Run, list[Record]]]]) -> tuple[object, ...]:
    (device, sizes), played = item
    return played[-1][1][0].device_kind == "cpu", device, sorted(sizes)


def _case(
    anchor: str,
    device: str,
    played: Sequence[tuple[Run, list[Record]]],
    sources: Mapping[str, Source],
    note: Callable[[str], None],
) -> Case:
    run, newest = played[-1]
    samples = read_samples(run.path, note)
    earlier: dict[tuple[str, str], list[Record]] = {}
    for _, records in played:
        for record in records:
            earlier.setdefault((record.candidate, record.role), []).append(record)
    labels = _labels(newest)
    entries = [
        Entry(
            f"{anchor}e{number}",
            label,
            record,
            samples.get((record.candidate, record.role), Samples()),
            sources.get(record.source_hash or ""),
            tuple(earlier.pop((record.candidate, record.role), [record])),
        )
        for number, (label, record) in enumerate(zip(labels, newest), start=1)
    ]
    gone = tuple(records[-1] for records in earlier.values())
    return Case(anchor, device, newest[0].sizes, run, len(played), tuple(entries), gone)


def _labels(records: Iterable[Record]) -> list[str]:
    """Names as they are; a later one of the same name gets its role or its number behind it."""
    labels: list[str] = []
    for record in records:
        name = " ".join(record.candidate.split()) or "(no name)"
        label = name if name not in labels else f"{name} ({record.role})"
        number = 2
        while label in labels:
            label, number = f"{name} ({number})", number + 1
        labels.append(label)
    return labels
