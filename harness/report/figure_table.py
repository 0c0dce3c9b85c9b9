"""Absolute figures of several devices beside each other (`--show`): a block of columns for each device and each pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from harness.model.places import PROGRAM
from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.comparison_text import letter, name_text
from harness.report.device_table import LONGEST_DEVICE, block_lines, failed_remarks
from harness.report.table import Column
from harness.results.absolute_figures import CLOCKS, Figure, is_same_source, ratio_of, rows_with_baseline, value_of
from harness.results.across_devices import Across
from harness.results.comparison import Compared
from harness.results.joined_runs import Row
from harness.results.record import Record

_JOULES = (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6))


def figure_tables(compared: Compared, across: Across, show: Sequence[Figure], width: int | None) -> list[str]:
    """Return the tables as lines, broken between devices where they are too wide."""
    names, *blocks = figure_blocks(compared, across, show)
    return block_lines(names[0], blocks, width)


def figure_blocks(compared: Compared, across: Across, show: Sequence[Figure]) -> list[list[Column]]:
    """Return the names, then the columns of each device, then the ratios of each pair of devices."""
    rows, runs = rows_with_baseline(across), across.runs
    blocks = [[Column("candidate", "left", [name_text(compared, row) for row in rows])]]
    cells = {figure.name: _cells(figure, rows, runs) for figure in show}
    for place, run in enumerate(runs):
        device = terminal.shortened(compared.joined.runs[run].device_name, LONGEST_DEVICE)
        columns = []
        for figure in show:
            title, texts = cells[figure.name]
            own = texts[place * len(rows):(place + 1) * len(rows)]
            if not columns:  # the first column has room for what became of a row without figures
                own = [text or _status(row.records[run]) for text, row in zip(own, rows)]
            columns.append(Column(f"{'' if columns else f'{letter(run)}: {device}'}\n{title}", "right", own))
        clocks = [record and record.status is Status.OK and record.sm_mhz or None for record in _of(rows, run)]
        if any(clocks):
            columns.append(Column("\nSM MHz", "right", ["" if each is None else f"{each:,.0f}" for each in clocks]))
        blocks.append(columns)
    for one, other in combinations(runs, 2):
        pair = f"{letter(other)}/{letter(one)}"
        blocks.append([
            Column(f"{'' if place else pair}\n{figure.title}", "right", [
                terminal.ratio_text(ratio_of(figure, row.records[one], row.records[other])) for row in rows
            ])
            for place, figure in enumerate(show)
        ])
    return blocks


def figure_remarks(compared: Compared, across: Across, show: Sequence[Figure]) -> list[str]:
    """Return the sentences below the table: clocks and limits, how to get what is missing, rows without a ratio."""
    rows, remarks = rows_with_baseline(across), []
    for run in across.runs:
        records = [record for record in _of(rows, run) if record is not None and record.status is Status.OK]
        told = [f"{what} {_span(records, column)} {unit}" for what, column, unit in (
            ("SM clock", "sm_mhz", "MHz"), ("memory clock", "mem_mhz", "MHz"), ("power limit", "power_limit_w", "W"),
        ) if any(getattr(record, column) for record in records)]
        remarks.append(f"{letter(run)}: {', '.join(told) or 'no clock and no power limit were recorded'}")
    a, b = map(letter, across.runs[:2])
    remarks.append(f"{b}/{a} divides the figure of {b} by that of {a}; such a ratio has no interval, and clocks and power "
                   "limits are part of it")
    for figure in show:
        remarks += _missing(across, rows, figure)
    edited = [row.name for row in rows if any(
        row.records[one] and row.records[other] and not is_same_source(row.records[one], row.records[other])
        for one, other in combinations(across.runs, 2)
    )]
    if edited:
        remarks.append(f"{listed(edited)}: no ratio where two devices ran different sources")
    return remarks + failed_remarks(across)


def figures_json(across: Across, show: Sequence[Figure]) -> dict[str, object]:
    """Return the same figures under stable keys, in the units of the records' columns."""
    return {
        "show": [figure.name for figure in show],
        "figures": [
            {
                "candidate": row.name,
                "runs": {letter(run): standing(row.records[run], show) for run in across.runs},
                "ratios": {
                    f"{letter(other)}/{letter(one)}": {
                        figure.name: ratio_of(figure, row.records[one], row.records[other]) for figure in show
                    }
                    for one, other in combinations(across.runs, 2)
                },
            }
            for row in rows_with_baseline(across)
        ],
    }


def standing(record: Record | None, show: Sequence[Figure]) -> dict[str, float | None]:
    """Return one row's figures on one device with its clocks and power limit."""
    clocks = {name: getattr(record, name) if record is not None else None for name in CLOCKS}
    return {**{figure.column: value_of(record, figure) for figure in show}, **clocks}


def _cells(figure: Figure, rows: Sequence[Row], runs: Sequence[int]) -> tuple[str, list[str]]:
    """Return a title, and the cells of all devices one device after the other, in one unit and with the same decimals."""
    values = [value_of(record, figure) for run in runs for record in _of(rows, run)]
    if figure.name == "time":
        unit, texts = terminal.time_column(values)
        return f"time ({unit})" if unit else "time", texts
    if figure.name == "energy":
        smallest = min((each for each in values if each), default=1.0)
        unit, scale = next((each for each in _JOULES if smallest >= 0.2 * each[1]), _JOULES[-1])
        return f"energy ({unit})", terminal.number_column([each and each / scale for each in values], digits=4)
    as_text: Callable[[float | None], str] = terminal.percent_text
    return figure.title, list(map(as_text, values)) if figure.name == "sol" else terminal.number_column(values)


def _missing(across: Across, rows: Sequence[Row], figure: Figure) -> list[str]:
    """Return one sentence where an ok row lacks the figure, with what brings it."""
    lacking = [
        run for run in across.runs for record in _of(rows, run)
        if record is not None and record.status is Status.OK and value_of(record, figure) is None
    ]
    if not lacking:
        return []
    where = listed([letter(run) for run in dict.fromkeys(lacking)])
    how = figure.needs
    if figure.name == "energy":
        how = f"{how}: {PROGRAM} problems/{across.case.problem}.yaml --energy"
    return [f"{figure.title}: {len(lacking)} ok rows of {where} lack it; {how}"]


def _span(records: Sequence[Record], column: str) -> str:
    values = [value for record in records if (value := getattr(record, column))]
    lo, hi = (f"{value:,.0f}" for value in (min(values), max(values)))
    return lo if lo == hi else f"{lo} to {hi}"


def _of(rows: Sequence[Row], run: int) -> list[Record | None]:
    return [row.records[run] for row in rows]


def _status(record: Record | None) -> str:
    return "" if record is None or record.status is Status.OK else record.status.value
