"""The leaderboard: the table of all records of a run, and below it a line for each that did not rank.

Pure: it takes records and returns text. A cell is empty where nothing was measured, and a time is shown only
for a row whose outputs were right. Which records are ranked is decided by `rank`, from `results.ranking`.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from harness.model.places import PROGRAM
from harness.model.problem_notes import bars_ranks, notes_in
from harness.model.spelling import listed
from harness.model.verdict import WANT_ANOTHER_DEVICE, ReasonCode, Status
from harness.report import sizes_table, terminal
from harness.report.table import Column, fitted, table_text
from harness.report.terminal import paint
from harness.results.ranking import TIMED, class_of, grouped, rank, shown_time, why_unranked
from harness.results.record import Record

__all__ = ["class_of", "rank", "render", "render_row", "title_of"]

_CALL_STYLES = {"FASTER": "green", "SLOWER": "red", "UNSURE": "yellow"}
_U_EXPONENTS = {"float64": "⁻⁵³", "float32": "⁻²⁴", "float16": "⁻¹¹", "bfloat16": "⁻⁸"}
_LONGEST_NAME = 32
_MOST_NAMED = 3  # rows by name that have the same note
# How many times as long eager may take beside one row as in its own: on an H200 1.001 was seen, on a busy CPU 1.9.
_AT_ODDS = 1.25
_FAR_SLOWER = 100.0
_DROPPED_FIRST = ("kind", "GB/s", "TFLOP/s", "eager's", "built by", "over eager")  # what a narrow terminal loses, in order


def render(
    records: Iterable[Record], *, width: int | None = None, color: bool = False,
    command: str | None = None, records_path: object = None,
) -> str:
    """The leaderboard as text, without a newline at its end.

    `width` is that of the terminal: columns of lesser weight are left out to fit it (None: all are shown).
    `command` is what the user typed to run the problem, for the line that says what to type next;
    `records_path` the CSV to name there.
    """
    groups = grouped(records)
    if not groups:
        return "No results: the run ended before its first record."
    blocks = [_block(group, width, color) for group in groups]
    everything = [record for group in groups for record in group]
    blocks += sizes_table.sizes_text(everything, width=width, color=color)
    return "\n\n".join([*blocks, "\n".join(_next_lines(everything, command, records_path))])


def render_row(
    records: Iterable[Record], candidate: str, *, width: int | None = None, color: bool = False
) -> tuple[str, str]:
    """The titles over the leaderboard of `records`, and the line of `candidate` in it, its remarks below.

    The columns are as wide as in that table, so that lines come to stand below each other as long as the titles stay.
    """
    group = next(group for group in grouped(records) if any(each.candidate == candidate for each in group))
    columns, _ = fitted(_columns(group, color), width, _DROPPED_FIRST)
    position = next(place for place, each in enumerate(group) if each.candidate == candidate)
    lines = table_text(columns).splitlines()
    titles, rows = lines[:-len(group)], lines[-len(group):]
    remarks = [line for each in _remarks(group[position], group) for line in terminal.indented(each, width)]
    return "\n".join(titles), "\n".join([rows[position], *remarks])


def _block(group: list[Record], width: int | None, color: bool) -> str:
    columns, left_out = fitted(_columns(group, color), width, _DROPPED_FIRST)
    lines = [paint(title_of(group[0]), "bold", color), "", table_text(columns), ""]
    lines += [paint(line, "dim", color) for line in terminal.indented(_legend(group), width)]
    if left_out:
        lines.append(paint(f"  left out to fit {width} columns: {listed(left_out)}", "dim", color))
    remarks = _all_remarks(group) + _too_close(group) + _at_odds(group)
    remarks += _of_the_problem(group)
    if remarks:
        lines += ["", *(line for remark in remarks for line in terminal.indented(remark, width))]
    return "\n".join(lines)


def title_of(record: Record) -> str:
    """`tril_matmul · M=4096 · float32 · NVIDIA H200 · 2026-05-01 12:30 UTC`."""
    device = record.device_name or ""
    if record.on_cpu:
        device = f"{device} (device=cpu)".strip()
    mode = record.mode if record.mode not in (None, "forward") else ""
    parts = (record.problem, record.sizes, record.dtype, mode, device, terminal.date_text(record.utc))
    return " · ".join(part for part in parts if part)


def _columns(group: list[Record], color: bool) -> list[Column]:
    """All columns that have anything to show."""
    timed = [record if record.status in TIMED else None for record in group]
    unit, times = terminal.time_column([shown_time(record) for record in group])
    baselines = sorted({record.baseline for record in group if record.baseline})
    over = f"speedup over {baselines[0]}" if len(baselines) == 1 else "speedup"

    def cells(cell: Callable[[Record], str]) -> list[str]:
        return ["" if record is None else cell(record) for record in timed]

    def rates(name: str) -> list[str]:
        return terminal.number_column([None if record is None else getattr(record, name) for record in timed])

    by_bytes = any(record.bound_by == "memory" for record in group)
    columns = [
        Column("#", "right", [str(record.rank or "") for record in group]),
        Column("candidate", "left", [_name_cell(record, group, color) for record in group]),
        Column("status", "left", [_status_cell(record, class_of(group), color) for record in group]),
        Column(f"time ({unit})", "right", times),
        Column(over, "left", cells(lambda record: _speedup_cell(record, color, named=len(baselines) > 1))),
        Column("over eager", "right", cells(lambda record: terminal.ratio_text(record.eager_speedup))),
        Column("GB/s" if by_bytes else "TFLOP/s", "right", rates("gbytes_s" if by_bytes else "tflops")),
        Column("% SOL", "right", cells(lambda record: terminal.percent_text(record.percent_of_sol))),
        Column("error (u)", "right", [terminal.units_text(record.err_max_u) for record in group]),
        Column("eager's", "right", [terminal.units_text(_eager_error(record)) for record in group]),
        Column("kind", "left", [record.kind or "" for record in group]),
        Column("built by", "left", [_built_cell(record) for record in group]),
    ]
    return [each for each in columns if any(each.cells) or each.title == "#"]


def _name_cell(record: Record, group: list[Record], color: bool) -> str:
    name = terminal.shortened(terminal.one_line(record.candidate), _LONGEST_NAME)
    if record.uuid and sum(each.candidate == record.candidate and each.role == record.role for each in group) > 1:
        name += f" on {_gpu(record)}"  # the control of each GPU
    return paint(name, "bold", color and record.rank == 1)


def _gpu(record: Record) -> str:
    """The beginning of a GPU's UUID, as much as tells those of one machine apart."""
    return (record.uuid or "").removeprefix("GPU-")[:4]


def _status_cell(record: Record, wanted: str | None, color: bool) -> str:
    if record.role == "baseline" and record.status is Status.OK:
        outside = None not in (record.precision_class, wanted) and record.precision_class != wanted
        return paint("outside class" if outside else "baseline", "dim", color)
    return paint(record.status.value, terminal.STATUS_STYLES.get(record.status.value, "red"), color)


def _speedup_cell(record: Record, color: bool, *, named: bool) -> str:
    """The speedup; `named` says over what, where rows of a table are over different baselines."""
    text = terminal.ratio_text(record.speedup, record.speedup_lo, record.speedup_hi)
    text += f" over {record.baseline}" if text and named else ""
    if not text or not record.call:
        return text
    return f"{text} {paint(record.call, _CALL_STYLES.get(record.call, 'dim'), color)}"


def _eager_error(record: Record) -> float | None:
    """Eager's error on the inputs of this row, where the row has one of its own to set against it."""
    return None if record.err_max_u is None or record.candidate == "eager" else record.eager_err_max_u


def _built_cell(record: Record) -> str:
    if record.cached:
        how = "cached"
    else:
        how = "" if record.build_s is None else terminal.seconds_text(record.build_s)
    return ", ".join(part for part in (record.language, how) if part)


def _legend(group: list[Record]) -> str:
    """What the columns mean in this run, and nothing that this run does not have."""
    timed = [record for record in group if shown_time(record) is not None]
    parts = []
    if timed:
        call = "one call" if group[0].on_cpu else "GPU time of one cold call"
        policy = timed[0].l2_policy
        parts.append(f"time: {call}, mean of the middle half{f' (cache: {policy})' if policy else ''}")
    with_interval = [record for record in timed if record.speedup_lo is not None]
    if with_interval and with_interval[0].confidence:
        own = [record for record in with_interval if record.role == "candidate"] or with_interval
        over = {record.players for record in own} - {None}
        where = f" over {max(over)} processes" if over and max(over) > 1 else " from one process" if over else ""
        of_both = "" if with_interval[0].baseline_hash is None else ", of a quotient of two speedups over eager"
        parts.append(f"[ ]: {with_interval[0].confidence * 100:g} % interval{where}{of_both}")
        pooled = [record for record in own if record.baseline_processes]
        if pooled:
            parts.append(f"{pooled[0].baseline}: its mean of {pooled[0].baseline_processes} processes")
    limits = {(record.sol_us, record.bound_by) for record in timed if record.sol_us}
    if len(limits) == 1:
        sol_us, bound_by = limits.pop()
        bound = f", {bound_by}-bound" if bound_by else ""
        parts.append(f"SOL: speed of light, {terminal.time_text(sol_us)}{bound}")
    if any(record.err_max_u is not None for record in group):
        exponent = _U_EXPONENTS.get(group[0].dtype)
        unit = f"u = 2{exponent} of its scale" if exponent else "in u"
        parts.append(f"error: the largest, then eager's own, {unit}")
    gpus = {record.uuid for record in group if record.uuid}
    if len(gpus) > 1:
        over = group[0].baseline or "eager"
        parts.append(f"{len(gpus)} GPUs, each row's speedup over {over} on its own; a GPU by its UUID's beginning")
    drivers = sorted({record.driver for record in group if record.driver})
    if len(drivers) > 1:
        parts.append(f"drivers {listed(drivers)}: each row in the CSV names its own")
    return " · ".join(parts)


def _all_remarks(group: list[Record]) -> list[str]:
    """The remarks on all rows; rows that did not run for one reason share a line, and so do those that are only compiled."""
    remarks = []
    for record in group:
        alike = [each for each in group if _ending(each) == _ending(record)]
        if record.status not in WANT_ANOTHER_DEVICE or len(alike) == 1:
            remarks += _remarks(record, group)
            continue
        own = [] if record is not alike[0] else [_shared_remark(alike)]
        remarks += own + _remarks(record, group)[1:]
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
        return (
            f"{whose}: compiled{f' for {listed(archs)}' if archs else ''} without spills; there is no GPU here to run them. "
            f"{PROGRAM} show {first.candidate}   tells its registers and shared memory"
        )
    return f"{whose}: {first.status.value}: {first.reason or 'no reason was recorded'}"


def _remarks(record: Record, group: list[Record]) -> list[str]:
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
    if len(rows) > _MOST_NAMED:
        return f"{len(rows)} of {len(group)} rows"
    return ", ".join(each.candidate for each in rows)


def _too_close(group: list[Record]) -> list[str]:
    """One line for each pair of neighbours in rank whose speedup intervals overlap."""
    ranked = [record for record in group if record.rank is not None]
    return [
        f"{first.candidate} and {second.candidate}: ranks {first.rank} and {second.rank} are close, "
        f"their intervals overlap"
        for first, second in zip(ranked, ranked[1:])
        if None not in (first.speedup_lo, second.speedup_hi) and second.speedup_hi >= first.speedup_lo
    ]


def _at_odds(group: list[Record]) -> list[str]:
    """One line where eager took another time beside a row than in its own, on the same device, for the worst of such
    rows.

    Times of a table are then no guide to its speedups, which are of the same rounds.
    """
    own_us = {each.uuid: each.time_us for each in group if each.role == "baseline" and each.candidate == "eager"}
    apart = {
        position: abs(math.log(_eager_us(each) / own_us[each.uuid])) for position, each in enumerate(group)
        if _eager_us(each) > 0.0 and (own_us.get(each.uuid) or 0.0) > 0.0
        and (each.time_us or 0.0) < _FAR_SLOWER * _eager_us(each)  # else it waits between calls, and is slower after that
    }
    if not apart or max(apart.values()) < math.log(_AT_ODDS):
        return []
    worst = group[max(apart, key=apart.get)]
    beside, own = (terminal.time_text(time_us) for time_us in (_eager_us(worst), own_us[worst.uuid]))
    return [
        f"{worst.candidate}: eager took {beside} beside it and {own} in its own row: something else was using the "
        "device; speedups are of the same rounds, times are not; run again when it is quiet"
    ]


def _eager_us(record: Record) -> float:
    """Eager's time in the rounds of that row; 0 where it is not known."""
    over_eager = record.baseline_us if record.baseline == "eager" else None
    return record.eager_us or over_eager or 0.0


def _next_lines(records: list[Record], command: str | None, records_path: object) -> list[str]:
    """Where the records are, and the one command that helps most now."""
    first = records[0]
    command = command or f"{PROGRAM} problems/{first.problem}.yaml"
    own = [each for each in records if each.role == "candidate"]
    unsure = [each for each in own if each.status is Status.UNSURE]
    waiting = [
        each for each in own
        if each.status in WANT_ANOTHER_DEVICE and each.reason_code is not ReasonCode.SAVED_MEANWHILE
    ]
    failed = [each for each in own if each.status is not Status.OK and each not in unsure + waiting]
    if failed:
        text = f"Next: {command} --only {failed[0].candidate}   runs that one alone, once it is mended"
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
