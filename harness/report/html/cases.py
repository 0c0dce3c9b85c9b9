"""Runs sorted into what the page is made of: problems, in each its cases, in each its entries with their history.

The table of a case has the newest row of each candidate, from whichever run: what else there is of it is history. Rows
of another problem text, method or card of that name are listed apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.report.html.raw_samples import Samples, read_samples
from harness.report.html.run_files import Source
from harness.results.joined_runs import newest_rows
from harness.results.ranking import grouped, place_in_table
from harness.results.record import Record
from harness.results.result_files import ResultFile


@dataclass(frozen=True)
class Entry:
    """One row of a case, `is_earlier` where not of its newest run: `label` is its name, made unique within the case,
    and `history` goes from the oldest to this one.
    """

    anchor: str
    label: str
    record: Record
    samples: Samples
    source: Source | None
    history: tuple[Record, ...]
    is_earlier: bool = False


@dataclass(frozen=True)
class Case:
    """One problem at one set of sizes on one device, with the newest row of each candidate in the table's order. `run`
    is its newest run, and `runs` how many there are.
    """

    anchor: str
    device: str
    sizes: str
    run: ResultFile
    runs: int
    entries: tuple[Entry, ...]
    gone: tuple[Record, ...]

    @property
    def records(self) -> list[Record]:
        return [entry.record for entry in self.entries]

    @property
    def first(self) -> Record:
        """A row of the newest run."""
        return next(entry.record for entry in self.entries if not entry.is_earlier)

    @property
    def over(self) -> tuple[str, str | None]:
        """What the speedups of its rows are over: the name of a baseline, and the hash of its source if a file."""
        first = next((record for record in self.records if record.baseline), self.records[0])
        return first.baseline or "eager", first.baseline_hash

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
    runs: Sequence[ResultFile], sources: Mapping[str, Source], note: Callable[[str], None] = lambda text: None
) -> list[Problem]:
    """The runs, given from the oldest to the newest, as problems sorted by name."""
    asked: dict[tuple[str, str, str], dict[tuple[str, frozenset[str]], list[tuple[ResultFile, list[Record]]]]] = {}
    for run in runs:
        for group in grouped(run.records):
            first = group[0]
            question = (first.problem, first.dtype, first.mode or "forward")
            place = (ResultFile(run.path, (first,)).device_name, frozenset(first.sizes.split()))
            asked.setdefault(question, {}).setdefault(place, []).append((run, group))
    problems = []
    for number, (question, places) in enumerate(sorted(asked.items()), start=1):
        cases = [
            _case(f"p{number}c{position}", device, with_records, sources, note)
            for position, ((device, _), with_records) in enumerate(sorted(places.items(), key=_gpus_first), start=1)
        ]
        problems.append(Problem(f"p{number}", *question, tuple(cases)))
    return problems


def _gpus_first(item: tuple[tuple[str, frozenset[str]], list[tuple[ResultFile, list[Record]]]]) -> tuple[object, ...]:
    (device, sizes), with_records = item
    return with_records[-1][1][0].on_cpu, device, sorted(sizes)


def _case(
    anchor: str, device: str, with_records: Sequence[tuple[ResultFile, list[Record]]], sources: Mapping[str, Source],
    note: Callable[[str], None],
) -> Case:
    run = with_records[-1][0]
    cards = {_card_of(record, run) for record in with_records[-1][1]}
    comparable = [(each, [record for record in records if _card_of(record, each) in cards])
                  for each, records in with_records]
    rows = sorted(newest_rows(comparable), key=lambda row: place_in_table(row[1]))
    samples = {path: read_samples(path, note) for path in sorted({each.path for each, _ in rows})}
    history: dict[tuple[str, str], list[Record]] = {}
    for _, records in with_records:
        for record in records:
            history.setdefault((record.candidate, record.role), []).append(record)
    entries, rank = [], 0
    for number, (label, (own_run, record)) in enumerate(zip(_labels(record for _, record in rows), rows), start=1):
        key = (record.candidate, record.role)
        rank += record.rank is not None
        entries.append(Entry(
            f"{anchor}e{number}", label, replace(record, rank=None if record.rank is None else rank),
            samples[own_run.path].get((record.run_id, *key), Samples()), sources.get(record.source_hash or ""),
            tuple(history.pop(key, [record])), is_earlier=own_run is not run,
        ))
    gone = tuple(records[-1] for records in history.values())
    return Case(anchor, device, rows[0][1].sizes, run, len(with_records), tuple(entries), gone)


def _card_of(record: Record, run: ResultFile) -> tuple[object, ...]:
    return ResultFile(run.path, (record,)).known_device


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
