"""Who is ranked, and in which order the rows of a table stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.model.problem_notes import bars_ranks, notes_in
from harness.model.verdict import Status
from harness.results.record import Record

if TYPE_CHECKING:
    from harness.model.problem import Problem

TIMED = (Status.OK, Status.UNSURE)  # statuses whose outputs were right, so that their time may be shown
_STATUS_ORDER = {status: place for place, status in enumerate(Status)}


def rank(records: Iterable[Record], kinds: Sequence[str], precision_class: str | None = None) -> list[Record]:
    """The records in the order of the table, with ranks: `ok` candidates of an admitted kind from 1, by the time that
    the judge's own clock vouches for. Records of different problems or sizes are ranked apart.

    A candidate whose precision class is not `precision_class` (by default that of the eager baseline) gets no rank, and
    neither does one of unknown kind, or one whose row does not show its work.
    """
    ranked: list[Record] = []
    for group in grouped(records):
        wanted, place = precision_class or class_of(group), 0
        for record in group:
            admitted = record.kind in kinds and record.precision_class == wanted and shows_its_work(record)
            is_ranked = record.role == "candidate" and record.status is Status.OK and record.time_us and admitted
            place += bool(is_ranked)
            ranked.append(replace(record, rank=place if is_ranked else None))
    return ranked


def rank_of(records: Iterable[Record], problem: Problem) -> list[Record]:
    """`rank`, of the kinds and in the class that `problem` admits."""
    return rank(records, problem.kinds, problem.accuracy.precision_class)


def vouched_speedup(speedup: float | None, time_us: float | None, unvouched_us: float | None) -> float:
    """Return the `speedup` of a row as its rank counts it: that of a call that takes `unvouched_us` longer."""
    if not speedup or not unvouched_us:
        return speedup or 0.0
    return speedup * time_us / (time_us + unvouched_us) if time_us else 0.0


def shows_its_work(record: Record) -> bool:
    """Whether its problem can show what a candidate computes, and it did all that the reference does."""
    return not bars_ranks(record.problem_note) and record.state_moved is not False


def grouped(records: Iterable[Record]) -> list[list[Record]]:
    """The records by problem, sizes, dtype and mode, each group in the order of the table."""
    groups: dict[tuple[str | None, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((record.problem, record.sizes, record.dtype, record.mode), []).append(record)
    return [sorted(group, key=place_in_table) for group in groups.values()]


def class_of(group: Iterable[Record]) -> str | None:
    """The precision class a group is ranked in: that of its ranked rows, else of its eager baseline. Without either it
    is the class that all its ok candidates share; None when they share none.
    """
    group = list(group)
    ranked = [record for record in group if record.rank is not None]
    eager = [record for record in group if record.role == "baseline" and record.candidate == "eager"]
    named = [record.precision_class for record in ranked + eager if record.precision_class]
    if named:
        return named[0]
    shared = {each.precision_class for each in group if each.role == "candidate" and each.status is Status.OK}
    return shared.pop() if len(shared) == 1 else None


def place_in_table(record: Record) -> tuple[object, ...]:
    """Timed rows by the time that is vouched for, then the rest by status and name; baselines among them."""
    shown = shown_time(record)
    vouched_us = (shown or 0.0) + (record.unvouched_us or 0.0)
    return shown is None, vouched_us, _STATUS_ORDER[record.status], record.candidate


def shown_time(record: Record) -> float | None:
    """The time of a row whose outputs were right, in us; None for every other, whatever was timed."""
    return record.time_us if record.status in TIMED else None


def why_unranked(record: Record, group: Sequence[Record]) -> str:
    """Why an `ok` candidate of `group` has no rank, in words."""
    wanted = class_of(group)
    if bars_ranks(record.problem_note):
        return next(note.sentence for note in notes_in(record.problem_note) if note.bars_ranks)
    if not record.time_us:
        return "no time was measured"
    if record.state_moved is False:
        return "it leaves the model's state as it was, which forward of the reference moves"
    if record.kind in (None, "unknown"):
        return "whose kernels ran could not be traced"
    if wanted is not None and record.precision_class != wanted:
        return f"its results are {record.precision_class or 'of no named class'}, the ranking is {wanted}"
    if record.kind == "custom" and not any(each.rank for each in group):
        return "the run ended before its ranks were given"
    whose = {"library": "its time is a library's", "mixed": "part of its time is a library's"}
    text = whose.get(record.kind, "its kernels are its own")
    return f"{text} (kind {record.kind}), which this problem does not rank"
