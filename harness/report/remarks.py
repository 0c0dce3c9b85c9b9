"""What is said below a leaderboard: why a row did not rank, what to know of others, and what to type next."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.model.paths import PROGRAM
from harness.model.problem_notes import bars_ranks, notes_in
from harness.model.spelling import listed
from harness.model.verdict import WANT_ANOTHER_DEVICE, ReasonCode, Status
from harness.report import terminal
from harness.results.own_baseline import speedup_over_eager
from harness.results.ranking import shown_time, why_unranked
from harness.results.record import Record

_MOST_NAMED = 2  # rows by name that have the same note
# What two times say of a speedup may lie outside its interval by so much, and within it be so many times the speedup.
# On H200s it lay outside by 0.3 % at most, on a busy CPU by a factor of 4.
_OUTSIDE = 1.01
_FAR_APART = 1.25
_FAR_SLOWER = 100.0


def remarks_on(group: list[Record]) -> list[str]:
    """The lines below one table: on its rows, on rows that are close or at odds, and on the problem."""
    return _on_all_rows(group) + _too_close(group) + times_at_odds(group) + _of_the_problem(group)


def _on_all_rows(group: list[Record]) -> list[str]:
    """The remarks on all rows; rows that did not run for one reason share a line, and so do those only compiled."""
    remarks = []
    for record in group:
        alike = [each for each in group if _ending(each) == _ending(record)]
        lines = remarks_on_row(record, group)
        if record.status in WANT_ANOTHER_DEVICE and len(alike) > 1:
            lines[:1] = [_shared_remark(alike)] if record is alike[0] else []
        remarks += lines
    return remarks


def _ending(record: Record) -> tuple[str, str | None]:
    """What rows have in common that share a line."""
    is_compiled = record.status is Status.COMPILED and not record.spills
    return record.status.value, None if is_compiled else record.reason


def _shared_remark(alike: list[Record]) -> str:
    """One line for rows that have one ending."""
    first = alike[0]
    names = ", ".join(each.candidate for each in alike)
    whose = f"{len(alike)} rows" if len(alike) > _MOST_NAMED else names
    if first.status is Status.COMPILED:
        archs = sorted({each.arch for each in alike if each.arch})
        compiled = f"compiled{f' for {listed(archs)}' if archs else ''} without spills"
        return f"{whose}: {compiled}; there is no GPU here to run them (registers: {PROGRAM} show {first.candidate})"
    return f"{whose}: {first.status.value}: {first.reason or 'no reason was recorded'}"


def remarks_on_row(record: Record, group: list[Record]) -> list[str]:
    """The line of a row that did not rank, and a line for each warning."""
    remarks = []
    if record.status is not Status.OK:
        reason = record.reason or "no reason was recorded"
        remarks.append(f"{record.candidate}: {record.status.value}: {reason}")
    elif record.role == "candidate" and record.rank is None and not bars_ranks(record.problem_note):
        remarks.append(f"{record.candidate}: ok, without a rank: {why_unranked(record, group)}")
    return remarks + [f"{whose}: note: {line}" for line in _notes_of(record) if (whose := _noted(line, record, group))]


def _of_the_problem(group: list[Record]) -> list[str]:
    """One line for each note on the problem, whichever rows have it."""
    notes = dict.fromkeys(note for record in group for note in notes_in(record.problem_note))
    return [f"note on {group[0].problem}: {note.sentence}" for note in notes]


def _notes_of(record: Record) -> list[str]:
    return [line for line in (record.warnings or "").splitlines() if line.strip()]


def _noted(line: str, record: Record, group: list[Record]) -> str | None:
    """The rows that have this note, where `record` is the first of them; None where another has said it already."""
    rows = [each for each in group if line in _notes_of(each)]
    if rows[0] is not record:
        return None
    names = ", ".join(each.candidate for each in rows)
    return f"{len(rows)} of {len(group)} rows" if len(rows) > _MOST_NAMED else names


def _too_close(group: list[Record]) -> list[str]:
    """One line for each pair of neighbours in rank whose speedup intervals overlap."""
    ranked = [record for record in group if record.rank is not None]
    return [
        f"{one.candidate} and {other.candidate}: ranks {one.rank} and {other.rank} are close, their intervals overlap"
        for one, other in zip(ranked, ranked[1:])
        if None not in (one.speedup_lo, other.speedup_hi) and other.speedup_hi >= one.speedup_lo
    ]


def times_at_odds(group: Sequence[Record]) -> list[str]:
    """One line for the row whose speedup over eager is farthest from eager's time, in its own row, over its time."""
    eager_us = {each.uuid: each.time_us for each in group if each.role == "baseline" and each.candidate == "eager"}
    apart = [_times_apart(each, eager_us.get(each.uuid) or 0.0) for each in group]
    many = sum(each > 0.0 for each in apart)
    if not many:
        return []
    farthest = max(apart)
    worst = group[apart.index(farthest)]
    beside_us, own_us = _eager_us(worst), eager_us[worst.uuid]
    why = f"eager took {terminal.time_text(beside_us)} beside it and {terminal.time_text(own_us)} in its own row"
    if abs(math.log(own_us / beside_us)) < farthest / 2:
        why = "its calls scatter within its rounds"
    others = f" (and {many - 1} more)" if many > 1 else ""
    by_times = terminal.ratio_text(own_us / worst.time_us)
    return [f"{worst.candidate}{others}: {by_times} eager by the times: {why}; go by the speedup"]


def _times_apart(record: Record, own_us: float) -> float:
    """How far, in logs, a row's time and eager's `own_us` are from its speedup over eager; 0 where they agree."""
    beside_us, over_eager = _eager_us(record), speedup_over_eager(record)
    is_timed = min(own_us, beside_us, shown_time(record) or 0.0) > 0.0
    if not is_timed or over_eager is None or (record.role == "baseline" and record.candidate == "eager"):
        return 0.0
    if record.time_us >= _FAR_SLOWER * beside_us:  # eager waits between its calls, and is slower after that
        return 0.0
    by_times = own_us / record.time_us
    apart = abs(math.log(by_times / over_eager.estimate))
    outside = max(by_times / over_eager.hi, over_eager.lo / by_times)
    is_reversed = record.call in ("FASTER", "SLOWER") and (by_times - 1) * (over_eager.estimate - 1) < 0
    return apart if apart >= math.log(_FAR_APART) or outside > _OUTSIDE or is_reversed else 0.0


def _eager_us(record: Record) -> float:
    """Eager's time in the rounds of that row; 0 where it is not known."""
    return record.eager_us or (record.baseline == "eager" and record.baseline_us) or 0.0


def _next_of_failed(record: Record, command: str) -> str:
    words = command.split()
    shows_where = record.status is Status.IMPRECISE or record.reason_code in (ReasonCode.WRONG_VALUES, ReasonCode.NOT_FINITE)
    if shows_where and "--out" not in words:
        return f"Next: {PROGRAM} show {shlex.quote(f'{record.problem}/{record.candidate}')}   says which elements are wrong"
    if ("--only", record.candidate) in zip(words, words[1:]):
        return f"Next: {command}   once it is mended"
    return f"Next: {command} --only {record.candidate}   runs that one alone, once it is mended"


def next_lines(records: list[Record], command: str | None, records_path: object) -> list[str]:
    """Where the records are, and the one command that helps most now."""
    first = records[0]
    command = command or f"{PROGRAM} problems/{first.problem}.yaml"
    own = [each for each in records if each.role == "candidate"]
    unsure = [each for each in own if each.status is Status.UNSURE]
    elsewhere = [each for each in own if each.status in WANT_ANOTHER_DEVICE]
    waiting = [each for each in elsewhere if each.reason_code is not ReasonCode.SAVED_MEANWHILE]
    failed = [each for each in own if each.status is not Status.OK and each not in unsure + waiting]
    if failed:
        text = _next_of_failed(failed[0], command)
    elif unsure:
        plain = re.sub(r" --(config|only) \S+", "", command)
        text = f"Next: {plain} --only {unsure[0].candidate} --config rigorous   measures it for longer"
    elif waiting:
        text = f"Next: {PROGRAM} doctor   says what this machine lacks to run the others"
    elif own:
        folder = Path(str(records_path)).parent.parent if records_path else f"results/{first.problem}"
        text = f"Next: {PROGRAM} compare {shlex.quote(f'{folder}/')}   sets this beside other devices"
    else:
        text = f"Next: put a file with a class ModelNew into candidates/{first.problem}/ and run again"
    return ([f"Results: {records_path}"] if records_path else []) + [text]
