"""Entries of several devices joined: what stands on one line is one source, or one baseline, and never two kernels."""

from __future__ import annotations

from dataclasses import dataclass

from harness.report.html.cases import Case, Entry, Problem
from harness.report.html.chart_rows import Row, has_speedup, place, with_interval
from harness.results.record import Record


@dataclass(frozen=True)
class SideRow:
    """One source in every case of a problem, by the name it has in the first; None where a case does not have it."""

    name: str
    entries: tuple[Entry | None, ...]


def side_by_side(problem: Problem) -> list[SideRow]:
    """Candidates joined by their source, baselines by name, fastest first.

    A name that stands for several sources has as many lines, and the beginning of each source's hash behind it.
    """
    joined: dict[tuple[str, str], dict[int, Entry]] = {}
    copied = set().union(*(_copied(case) for case in problem.cases))
    for number, case in enumerate(problem.cases):
        for entry in case.entries:
            record = entry.record
            if record.role == "baseline" and record.candidate == (record.baseline or "eager"):
                continue  # what the others are over: 1 by definition
            by_name = record.source_hash is None or record.source_hash in copied
            key = (record.source_hash or record.role, record.candidate if by_name else "")
            joined.setdefault(key, {})[number] = entry
    first = [next(iter(found.values())) for found in joined.values()]
    labels = [entry.label for entry in first]
    rows = [
        SideRow(
            f"{entry.label} ({(entry.record.source_hash or 'no source')[:6]})"
            if labels.count(entry.label) > 1
            else entry.label,
            tuple(found.get(number) for number in range(len(problem.cases))),
        )
        for entry, found in zip(first, joined.values())
    ]
    return sorted(rows, key=_fastest_first)


def speedups_beside(problem: Problem) -> list[Row]:
    """What the chart draws of it: a row for each speedup, with the device that it was measured on.

    Only of the devices whose speedups are over the first one's baseline: others are of another scale.
    """
    rows: list[Row] = []
    for line in side_by_side(problem):
        for case, entry in zip(problem.cases, line.entries):
            if entry is not None and has_speedup(entry.record) and case.over == problem.cases[0].over:
                rows.append({"name": line.name, "device": place(case), **with_interval(entry.record)})
    return rows


def _copied(case: Case) -> set[str]:
    """Sources that one case holds under several names: those are joined by name as well."""
    hashes = [entry.record.source_hash for entry in case.entries if entry.record.source_hash is not None]
    return {each for each in hashes if hashes.count(each) > 1}


def _fastest_first(row: SideRow) -> tuple[bool, float]:
    speedups = [_speedup(each.record) for each in row.entries if each is not None and has_speedup(each.record)]
    return not speedups, -(speedups[0] if speedups else 0.0)


def _speedup(record: Record) -> float:
    return record.speedup or 0.0
