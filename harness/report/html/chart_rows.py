"""The rows that the charts draw, as plain dictionaries computed from records and samples; nothing is drawn here.

Entries of several devices stand on one line where they are one source or one baseline: never two kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.report import terminal
from harness.report.html.cases import Case, Entry, Problem
from harness.report.html.raw_samples import FamilyError, Samples
from harness.results.joined_runs import copied_sources
from harness.results.own_baseline import speedup_over_eager
from harness.results.ranking import TIMED
from harness.results.record import Record

Row = dict[str, object]
_WIDE = 0.025  # of the axis: an interval longer than that reaches beyond its point


def speedups(case: Case) -> list[Row]:
    """One row per timed entry: estimate and interval over eager."""
    timed = [entry for entry in case.entries if has_speedup(entry.record)]
    ends = [end for entry in timed for end in _interval(entry.record)]
    return [
        {"name": entry.label, "call": entry.record.call or "none", "role": entry.record.role,
         "side": _side(entry.record, ends), **with_interval(entry.record), "label": terminal.speedup_text(entry.record)}
        for entry in timed
    ]


def has_speedup(record: Record) -> bool:
    return record.status in TIMED and record.speedup is not None and record.speedup > 0


def with_interval(record: Record) -> Row:
    """The speedup, the ends of its interval, and all three as text."""
    lo, hi = _interval(record)
    return {"x": record.speedup, "lo": lo, "hi": hi, "text": terminal.speedup_text(record)}


def _interval(record: Record) -> tuple[float, float]:
    """The ends of the interval; the estimate twice where there is none, or one that a logarithm cannot take."""
    lo, hi = record.speedup_lo, record.speedup_hi
    return (record.speedup, record.speedup) if lo is None or hi is None or min(lo, hi) <= 0 else (lo, hi)


def _side(record: Record, ends: Sequence[float]) -> str:
    """Where a label has room on a logarithmic axis of all `ends`: to the point's right in the left half, else to its
    left, above it when its own interval would run through the label.
    """
    least, most = math.log(min(*ends, 1.0)), math.log(max(*ends, 1.0))
    lo, hi = _interval(record)
    if most == least:
        return "right"
    if math.log(hi / lo) > _WIDE * (most - least):
        return "above"
    return "right" if (math.log(record.speedup) - least) / (most - least) < 0.5 else "left"


def place(case: Case) -> str:
    return f"{case.device} · {case.sizes}" if case.sizes else case.device


def rounds(entry: Entry, most: int) -> list[Row]:
    """The speedup of each round over eager, and one row of kind "interval" with what they were estimated at."""
    ratios = [ratio for worker in entry.samples.players for ratio in worker.ratios if abs(ratio) < 50]
    rows: list[Row] = [{"kind": "round", "round": place, "x": math.exp(each)} for place, each in enumerate(ratios, 1)]
    over_eager = speedup_over_eager(entry.record)  # as the rounds are, whatever the row's own speedup is over
    if rows and over_eager is not None:
        ends = {"x": over_eager.estimate, "lo": over_eager.lo, "hi": over_eager.hi}
        rows = [*thinned(rows, most), {"kind": "interval", **ends}]
    return rows


def errors(samples: Samples) -> list[Row]:
    """For each family the input set that came nearest to its bound: the error, eager's, and what was allowed."""
    worst: dict[str, FamilyError] = {}
    for each in samples.errors:
        worst[each.family] = max(worst.get(each.family, each), each, key=lambda error: error.share)
    rows = []
    for each in worst.values():
        for what, value in (("candidate", each.max_u), ("eager", each.eager_max_u), ("allowed", each.allowed_max_u)):
            if value is not None:
                rows.append({"family": each.family, "what": what, "u": value, "sizes": each.sizes})
    return rows


def history(entry: Entry) -> list[Row]:
    """The speedups of an entry in its runs over the baseline of its newest; versions of its source are numbered from
    the oldest. An interval that reaches beyond twice the largest estimate, or below half the smallest, is cut there.
    """
    versions = list(dict.fromkeys(record.source_hash for record in entry.history))
    over = entry.record.baseline_hash
    timed = [record for record in entry.history if has_speedup(record) and record.baseline_hash == over]
    values = [record.speedup for record in timed] or [1.0]
    least, most = min(values) / 2, 2 * max(values)
    rows = []
    for record in timed:
        lo, hi = _interval(record)
        rows.append({
            "utc": record.utc, "run": terminal.date_text(record.utc), "x": record.speedup, "lo": max(lo, least),
            "hi": min(hi, most), "text": terminal.speedup_text(record),
            "version": f"source {versions.index(record.source_hash) + 1}",
        })
    return rows


def thinned(rows: list[Row], most: int) -> list[Row]:
    """At most `most` of the rows, evenly spaced; the first and the last stay."""
    if len(rows) <= most:
        return rows
    if most < 2:
        return []
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]


@dataclass(frozen=True)
class SideRow:
    """One source in every case of a problem, by the name it has in the first; None where a case does not have it."""

    name: str
    entries: tuple[Entry | None, ...]


def side_by_side(problem: Problem) -> list[SideRow]:
    """Candidates joined by their source, baselines by name, fastest first. A name that stands for several sources has
    as many lines, and the beginning of each source's hash behind it.
    """
    joined: dict[tuple[str, str], dict[int, Entry]] = {}
    copied = copied_sources(case.records for case in problem.cases)
    for number, case in enumerate(problem.cases):
        for entry in case.entries:
            record = entry.record
            if record.role == "baseline" and record.candidate == (record.baseline or "eager"):
                continue  # what the others are over: 1 by definition
            by_name = record.source_hash is None or record.source_hash in copied
            key = (record.source_hash or record.role, record.candidate if by_name else "")
            joined.setdefault(key, {})[number] = entry
    first = [next(iter(entries.values())) for entries in joined.values()]
    labels = [entry.label for entry in first]
    rows = []
    for entry, entries in zip(first, joined.values()):
        source = f" ({(entry.record.source_hash or 'no source')[:6]})" if labels.count(entry.label) > 1 else ""
        in_cases = tuple(entries.get(number) for number in range(len(problem.cases)))
        rows.append(SideRow(f"{entry.label}{source}", in_cases))
    return sorted(rows, key=_fastest_first)


def speedups_beside(problem: Problem) -> list[Row]:
    """What the chart draws of it: a row for each speedup, with its device, if that has the first one's baseline: others
    are of another scale.
    """
    rows: list[Row] = []
    for line in side_by_side(problem):
        for case, entry in zip(problem.cases, line.entries):
            if entry is not None and has_speedup(entry.record) and case.over == problem.cases[0].over:
                rows.append({"name": line.name, "device": place(case), **with_interval(entry.record)})
    return rows


def _fastest_first(row: SideRow) -> tuple[bool, float]:
    speedups = [each.record.speedup for each in row.entries if each is not None and has_speedup(each.record)]
    return not speedups, -(speedups[0] if speedups else 0.0)
