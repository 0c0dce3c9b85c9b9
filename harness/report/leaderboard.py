"""The leaderboard: the table of all records of a run; the lines below it are `remarks`'.

A cell is empty where nothing was measured, and a time is shown only for a row whose outputs were right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.model.spelling import listed
from harness.report import sizes_table, terminal
from harness.report.remarks import next_lines, remarks_on, remarks_on_row
from harness.report.table import Column, fitted, table_text
from harness.report.terminal import paint
from harness.results.ranking import TIMED, class_of, grouped, shown_time
from harness.results.record import Record

_U_EXPONENTS = {"float64": "⁻⁵³", "float32": "⁻²⁴", "float16": "⁻¹¹", "bfloat16": "⁻⁸"}
_LONGEST_NAME = 32
_DROPPED_FIRST = ("kind", "GB/s", "TFLOP/s", "eager's", "built by", "over eager")  # by a narrow terminal, in order


def render(
    records: Iterable[Record], *, width: int | None = None, color: bool = False, command: str | None = None,
    records_path: object = None,
) -> str:
    """The leaderboard as text, without a newline at its end.

    Columns of lesser weight are left out to fit the terminal's `width` (None: all are shown). `command` is what the
    user typed to run the problem, and `records_path` the CSV, for the line that says what to type next.
    """
    groups = grouped(records)
    if not groups:
        return "No results: the run ended before its first record."
    blocks = [_block(group, width, color) for group in groups]
    everything = [record for group in groups for record in group]
    blocks += sizes_table.sizes_text(everything, width=width, color=color)
    return "\n\n".join([*blocks, "\n".join(next_lines(everything, command, records_path))])


def render_row(
    records: Iterable[Record], candidate: str, *, width: int | None = None, color: bool = False
) -> tuple[str, str]:
    """The titles over the leaderboard of `records`, and the line of `candidate` in it, its remarks below. The columns
    are as wide as in that table, so that lines come to stand below each other as long as the titles stay.
    """
    group = next(group for group in grouped(records) if any(each.candidate == candidate for each in group))
    columns, _ = fitted(_columns(group, color), width, _DROPPED_FIRST)
    position = next(place for place, each in enumerate(group) if each.candidate == candidate)
    lines = table_text(columns).splitlines()
    titles, rows = lines[:-len(group)], lines[-len(group):]
    remarks = [line for each in remarks_on_row(group[position], group) for line in terminal.indented(each, width)]
    return "\n".join(titles), "\n".join([rows[position], *remarks])


def _block(group: list[Record], width: int | None, color: bool) -> str:
    columns, left_out = fitted(_columns(group, color), width, _DROPPED_FIRST)
    lines = [paint(title_of(group[0]), "bold", color), "", table_text(columns), ""]
    lines += [paint(line, "dim", color) for line in terminal.indented(_legend(group), width)]
    if left_out:
        lines.append(paint(f"  left out to fit {width} columns: {listed(left_out)}", "dim", color))
    remarks = [line for remark in remarks_on(group) for line in terminal.indented(remark, width)]
    lines += ["", *remarks] if remarks else []
    return "\n".join(lines)


def title_of(record: Record) -> str:
    """`tril_matmul · M=4096 · float32 · NVIDIA H200 · 2026-05-01 12:30 UTC`."""
    device = f"{record.device_name or ''}{' (device=cpu)' if record.on_cpu else ''}".strip()
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

    by_bytes = any(record.bound_by == "memory" for record in group)
    wanted_class = class_of(group)
    rates = [record and getattr(record, "gbytes_s" if by_bytes else "tflops") for record in timed]
    columns = [
        Column("#", "right", [str(record.rank or "") for record in group]),
        Column("candidate", "left", [_name_cell(record, group, color) for record in group]),
        Column("status", "left", [_status_cell(record, wanted_class, color) for record in group]),
        Column(f"time ({unit})", "right", times),
        Column(over, "left", cells(lambda record: _speedup_cell(record, color, named=len(baselines) > 1))),
        Column("over eager", "right", cells(lambda record: terminal.ratio_text(record.eager_speedup))),
        Column("GB/s" if by_bytes else "TFLOP/s", "right", terminal.number_column(rates)),
        Column("% SOL", "right", cells(lambda record: terminal.percent_text(record.percent_of_sol))),
        Column("error (u)", "right", [terminal.units_text(record.err_max_u) for record in group]),
        Column("eager's", "right", [terminal.units_text(terminal.eager_error(record)) for record in group]),
        Column("kind", "left", [record.kind or "" for record in group]),
        Column("built by", "left", [terminal.built(record) for record in group]),
    ]
    return [each for each in columns if any(each.cells) or each.title == "#"]


def _name_cell(record: Record, group: list[Record], color: bool) -> str:
    name = terminal.shortened(terminal.one_line(record.candidate), _LONGEST_NAME)
    if record.uuid and sum(each.candidate == record.candidate and each.role == record.role for each in group) > 1:
        name += f" on {record.uuid.removeprefix('GPU-')[:4]}"  # the control of each GPU
    return paint(name, "bold", color and record.rank == 1)


def _status_cell(record: Record, wanted: str | None, color: bool) -> str:
    word = terminal.baseline_word(record, wanted)
    if word is not None:
        return paint(word, "dim", color)
    return paint(record.status.value, terminal.STATUS_STYLES.get(record.status.value, "red"), color)


def _speedup_cell(record: Record, color: bool, *, named: bool) -> str:
    """The speedup; `named` says over what, where rows of a table are over different baselines."""
    text = terminal.speedup_text(record)
    text += f" over {record.baseline}" if text and named else ""
    if not text or not record.call:
        return text
    return f"{text} {paint(record.call, terminal.CALL_STYLES.get(record.call, 'dim'), color)}"


def _legend(group: list[Record]) -> str:
    """What the columns mean in this run, and nothing that this run does not have."""
    timed = [record for record in group if shown_time(record) is not None]
    parts = []
    if timed:
        call = "one call" if group[0].on_cpu else "GPU time of one cold call"
        policy = f" (cache: {timed[0].l2_policy})" if timed[0].l2_policy else ""
        parts.append(f"time: {call}, mean of the middle half{policy}")
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
