"""Devices beside each other: a block of columns for each, and the sentences below them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.comparison_text import letter, name_text, result_text
from harness.report.table import Column, table_text, table_width
from harness.results.across_devices import Across
from harness.results.comparison import Compared
from harness.results.record import Record

LONGEST_DEVICE = 24


def across_tables(compared: Compared, across: Across, width: int | None) -> list[str]:
    """The tables as lines: as many devices beside each other as fit, at least one."""
    names = Column("candidate", "left", [name_text(compared, row) for row in across.rows])
    return block_lines(names, [across_block(compared, across, run) for run in across.runs], width)


def block_lines(names: Column, blocks: Sequence[list[Column]], width: int | None) -> list[str]:
    """Return tables as lines: as many blocks beside each other as fit, at least one, each table with the names."""
    groups: list[list[Column]] = []
    for block in blocks:
        if groups and (width is None or table_width([*groups[-1], *block]) <= width):
            groups[-1] += block
        else:
            groups.append([names, *block])
    return [line for group in groups for line in [*table_text(group).splitlines(), ""]]


def across_block(compared: Compared, across: Across, run: int) -> list[Column]:
    """The columns of one device: speedup over its own baseline, % of its own speed of light, place."""
    records = [row.records[run] for row in across.rows]
    baselines = sorted({record.baseline for record in records if record is not None and record.baseline})
    over = f"speedup over {baselines[0]}" if len(baselines) == 1 else "speedup"
    device = terminal.shortened(compared.joined.runs[run].device_name, LONGEST_DEVICE)
    first = across.places.get(across.runs[0], {})
    places = []
    for row in across.rows:
        place, before = across.places[run].get(row.name), first.get(row.name)
        moved = "" if place is None or place == before else f" ({before - place:+d})".replace("-", "−")
        places.append("" if place is None else f"{place}{moved}")
    columns = [
        Column(f"{letter(run)}: {device}\n{over}", "left", ["" if each is None else result_text(each)
                                                            for each in records]),
        Column("\n% SOL", "right", [_sol_cell(each) for each in records]),
        Column("\nplace", "left", places),
    ]
    return [each for each in columns if not each.title.startswith("\n") or any(each.cells)]


def across_remarks(compared: Compared, across: Across) -> list[str]:
    """Below the table of devices: geometric means, who changed places, why a row has no speedup."""
    remarks = []
    if across.means and len(across.shared) > 1:
        told = [f"{letter(run)} {terminal.ratio_text(mean.estimate, mean.lo, mean.hi)}"
                for run, mean in across.means.items()]
        over = [f"{letter(run)} over {letter(across.runs[0])} {terminal.ratio_text(each.estimate, each.lo, each.hi)}"
                for run, each in across.against.items()]
        remarks.append(f"geometric mean speedup over the {len(across.shared)} candidates that all have: "
                       f"{', '.join(told)}; {', '.join(over)}")
    if across.shared:
        moved = across.moved
        told = [f"{name} ({', '.join(f'{across.places[run][name]} in {letter(run)}' for run in across.runs)})"
                for name in moved]
        remarks.append(f"places among those: {'; '.join(told)}" if moved else "places among those: the same on all")
    return remarks + failed_remarks(across)


def failed_remarks(across: Across) -> list[str]:
    """Return a sentence for each row that is not ok on a device, with the reason."""
    remarks = []
    for row in across.rows:
        where: dict[str, list[str]] = {}
        for run in across.runs:
            record = row.records[run]
            if record is not None and record.status is not Status.OK:
                words = (record.reason or "no reason was recorded").strip().splitlines()[0]
                where.setdefault(f"{record.status.value}: {words}", []).append(letter(run))
        remarks += [f"{row.name} in {listed(runs)}: {why}" for why, runs in where.items()]
    return remarks


def _sol_cell(record: Record | None) -> str:
    return terminal.percent_text(record.percent_of_sol) if record and record.status is Status.OK else ""
