"""What a comparison shows, on a terminal and on a page alike: the names of runs, what did not match, and the columns
and sentences of its tables: runs on one device, devices beside each other, their figures (`--show`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from harness.model.paths import PROGRAM
from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.next_step import settle
from harness.report.table import Column, table_text, table_width
from harness.results.across_devices import (
    CLOCKS, AcrossDevices, Figure, is_same_source, ratio_of, rows_with_baseline, value_of,
)
from harness.results.changes import DRIFT, NOT_IN_BOTH, Change, Pair
from harness.results.comparison import Compared
from harness.results.joined_runs import Case, Difference, Row, is_forcible
from harness.results.ranking import class_of
from harness.results.record import Record

_LONGEST_NAME = 32
_LONGEST_DEVICE = 24
_MOST_RUNS = 12  # listed one by one
_STYLES = terminal.CALL_STYLES | {"WON": "green", "LOST": "red"}
_MARGINS = {
    "control": "eager against itself was {margin} from 1 in one of the runs: what is less is no change",
    "canary": "canaries agree with themselves to {margin}: what is less is no change",
}
_JOULES = (("J", 1.0), ("mJ", 1e-3), ("µJ", 1e-6))


def letter(run: int) -> str:
    """The name of a run in the output: A, B, … Z, then R27 and so on."""
    return chr(ord("A") + run) if run < 26 else f"R{run + 1}"


def device_texts(compared: Compared) -> list[str]:
    """The device of each run by its name; cards of one model with the beginnings of their UUIDs."""
    runs = compared.joined.runs
    cards: dict[str, set[object]] = {}
    for run in runs:
        cards.setdefault(run.device_name, set()).add(run.device)
    return [
        f"{run.device_name} ({run.records[0].uuid[:12]})" if len(cards[run.device_name]) > 1 and run.records[0].uuid
        else run.device_name for run in runs
    ]


def result_text(record: Record) -> str:
    """What a run says of a candidate, in a few words: its speedup with the interval, or its status."""
    text = terminal.speedup_text(record)
    if record.status is Status.UNSURE:
        return f"{text} unsure".strip()
    return (text or "ok, no speedup") if record.status is Status.OK else record.status.value


def unmatched_texts(compared: Compared) -> list[str]:
    """One sentence for each candidate or problem that only one run has."""
    return [text for case in compared.joined.cases for text in _unmatched(case)]


def refusal_texts(compared: Compared) -> list[str]:
    """One sentence for each two runs that were kept apart, with the fields that differ."""
    return [
        f"{case.title}, {letter(one)} and {letter(other)}: "
        + "; ".join(f"{name} is {a!r} in {letter(one)}, {b!r} in {letter(other)}" for name, a, b in mixed)
        + (" (the hash covers the problem file with its accuracy rule, and the reference)"
           if any(name == "problem_hash" for name, _, _ in mixed) else "")
        + ("" if is_forcible(mixed) else "; speedups over two baselines are not compared, even with --force")
        for case, one, other, mixed in compared.refusals()
    ]


def difference_text(difference: Difference) -> str:
    """`software: torch: A: 2.11.0; B, C: 2.13.0`."""
    holders: dict[str, list[str]] = {}
    for run, value in enumerate(difference.values):
        holders.setdefault("not recorded" if value is None else value, []).append(letter(run))
    shown_values = []
    for text, who in list(holders.items())[:_MOST_RUNS]:
        few = ", ".join(who) if len(who) <= _MOST_RUNS else f"{', '.join(who[:3])} … {who[-1]} ({len(who)} runs)"
        shown_values.append(f"{few}: {text}")
    more = [f"and {len(holders) - _MOST_RUNS} other values"] if len(holders) > _MOST_RUNS else []
    return f"{difference.group}: {difference.name}: " + "; ".join(shown_values + more)


def name_text(compared: Compared, row: Row) -> str:
    """The name, with a word for what is no candidate: a baseline, or one outside the ranking's class."""
    name = terminal.shortened(terminal.one_line(row.name), _LONGEST_NAME)
    for run, record in zip(compared.joined.runs, row.records):
        if record is not None and record.role == "baseline":
            outside = record.precision_class not in (None, class_of(run.records))
            return f"{name} ({'outside class' if outside else 'baseline'})"
    return name


def _unmatched(case: Case) -> list[str]:
    if len(case.runs) == 1:
        names = [each.name for each in case.unmatched] or ["its baseline"]
        return [f"{case.title}: only in {letter(case.runs[0])} ({listed(names)})"]
    texts = []
    for each in case.unmatched:
        if each.edited:
            versions = "; ".join(f"{letter(run)} has {(record.source_hash or '?')[:8]}, {result_text(record)}"
                                 for run, record in each.found)
            texts.append(f"{each.name}: its source was edited, so it is not joined (--by name joins it): {versions}")
        else:
            texts += [f"{each.name}: only in {letter(run)} ({result_text(record)})" for run, record in each.found]
    return texts


def change_text(change: Change) -> str:
    """`+8.0 % [+7.9, +8.2]`: how much faster it is now; rounded outwards."""
    return "" if change.ratio is None else percent_change(change.ratio.estimate, change.ratio.lo, change.ratio.hi)


def percent_change(ratio: float, lo: float | None = None, hi: float | None = None) -> str:
    decimals = 2 if lo is not None and hi is not None and hi - lo < 0.004 else 1
    step = 10 ** -decimals

    def text(value: float) -> str:
        return f"{value:+.{decimals}f}".replace("-", "−")

    if lo is None or hi is None:
        return f"{text(100 * (ratio - 1))} %"
    lower, upper = 100 * (lo - 1) // step * step, -(-100 * (hi - 1) // step) * step
    return f"{text(100 * (ratio - 1))} % [{text(lower)}, {text(upper)}]"


def time_text(change: Change) -> str:
    """The change of the raw time, and without the machine's drift where there was one."""
    if change.time_ratio is None:
        return ""
    text = percent_change(change.time_ratio)
    if change.drift is None or abs(change.drift - 1) < DRIFT:
        return text
    return f"{text} ({percent_change(change.time_ratio / change.drift)} less drift)"


def drift_text(pair: Pair) -> str | None:
    """A sentence where the machine's canaries or its SM clock moved between the two runs."""
    for row, _ in pair.changes:
        before, now = row.records[pair.reference], row.records[pair.run]
        if before is None or now is None:
            continue
        rates = (("copy bandwidth", before.canary_gbps, now.canary_gbps, "GB/s"),
                 ("multiply-add rate", before.canary_tflops, now.canary_tflops, "TFLOP/s"))
        moved = [f"{words} {terminal.number_text(a)} → {terminal.number_text(b)} {unit} ({percent_change(b / a)})"
                 for words, a, b, unit in rates if a and b and abs(b / a - 1) > DRIFT]
        return (f"the machine drifted between {letter(pair.reference)} and {letter(pair.run)}: {'; '.join(moved)}. "
                "Speedups are free of that, for the baseline drifted with them") if moved else None
    return None


def pair_columns(compared: Compared, pair: Pair, color: bool = False) -> list[Column]:
    """The columns that have anything to show."""
    old, new = letter(pair.reference), letter(pair.run)
    rows = [(row, change) for row, change in pair.changes if change.reason != NOT_IN_BOTH]
    by_time = any(change.basis == "time" for _, change in rows)
    cells = {
        "candidate": [name_text(compared, row) for row, _ in rows],
        f"speedup in {old}": [result_text(row.records[pair.reference]) for row, _ in rows],
        f"in {new}": [result_text(row.records[pair.run]) for row, _ in rows],
        "change of time" if by_time else "change": [change_text(change) for _, change in rows],
        "verdict": [terminal.paint(each.verdict, _STYLES.get(each.verdict, "dim"), color) for _, each in rows],
        "why": [change.reason for _, change in rows], "raw time": [time_text(change) for _, change in rows],
    }
    return [Column(title, "left", texts) for title, texts in cells.items() if any(texts)]


def pair_remarks(compared: Compared, pair: Pair) -> list[str]:
    """Below the table of a pair: its mean, what drifted, why a row has no speedup, what to run for the unsure."""
    old, new = letter(pair.reference), letter(pair.run)
    remarks = []
    if pair.mean is not None and pair.mean_of > 1:
        mean = percent_change(pair.mean.estimate, pair.mean.lo, pair.mean.hi)
        remarks.append(f"geometric mean over the {pair.mean_of} candidates that both have: {mean}")
    if any(change.basis == "time" for _, change in pair.changes):
        remarks.append(f"{old} and {new} have another torch or CUDA, so another baseline: the change is of the "
                       "candidate's own time, corrected by the canaries")
    for source, text in _MARGINS.items():
        margins = {change.margin for _, change in pair.changes if change.margin_from == source}
        remarks += [text.format(margin=f"{100 * max(margins):.2g} %")] if margins else []
    drift = drift_text(pair)
    remarks += [drift] if drift else []
    for row, change in pair.changes:
        record = row.records[pair.run]
        if change.verdict == "LOST" or (change.verdict == "" and record is not None and record.status is not Status.OK
                                        and row.records[pair.reference] is not None):
            words = (record.reason or "no reason was recorded").strip().splitlines()[0]
            remarks.append(f"{row.name}: {record.status.value} in {new}: {words}")
    unsure = [(row.records[pair.run], change) for row, change in pair.changes
              if change.verdict == "UNSURE" and not row.is_baseline]
    if unsure:
        names = listed([record.candidate for record, _ in unsure])
        first, *more = settle(unsure, compared.joined.runs[pair.reference].path)
        remarks += [f"{names}: UNSURE. Next: {first}", *more]
    return remarks


def block_lines(blocks: Sequence[list[Column]], width: int | None) -> list[str]:
    """Return tables as lines: as many blocks beside each other as fit, at least one, the first block in each table."""
    groups: list[list[Column]] = []
    for block in blocks[1:]:
        if groups and (width is None or table_width([*groups[-1], *block]) <= width):
            groups[-1] += block
        else:
            groups.append([*blocks[0], *block])
    return [line for group in groups for line in [*table_text(group).splitlines(), ""]]


def across_blocks(compared: Compared, across: AcrossDevices) -> list[list[Column]]:
    """Return the names, then the columns of each device."""
    names = [Column("candidate", "left", [name_text(compared, row) for row in across.rows])]
    return [names, *(_across_block(compared, across, run) for run in across.runs)]


def _across_block(compared: Compared, across: AcrossDevices, run: int) -> list[Column]:
    """The columns of one device: speedup over its own baseline, % of its own speed of light, place."""
    records = [row.records[run] for row in across.rows]
    baselines = sorted({record.baseline for record in records if record is not None and record.baseline})
    over = f"speedup over {baselines[0]}" if len(baselines) == 1 else "speedup"
    device = terminal.shortened(compared.joined.runs[run].device_name, _LONGEST_DEVICE)
    first = across.places.get(across.runs[0], {})
    places = []
    for row in across.rows:
        place, before = across.places[run].get(row.name), first.get(row.name)
        moved = "" if place is None or place == before else f" ({before - place:+d})".replace("-", "−")
        places.append("" if place is None else f"{place}{moved}")
    results = ["" if each is None else result_text(each) for each in records]
    ok = [each if each is not None and each.status is Status.OK else None for each in records]
    shares = [terminal.percent_text(each and each.percent_of_sol) for each in ok]
    columns = [
        Column(f"{letter(run)}: {device}\n{over}", "left", results), Column("\n% SOL", "right", shares),
        Column("\nplace", "left", places),
    ]
    return [each for each in columns if not each.title.startswith("\n") or any(each.cells)]


def across_remarks(compared: Compared, across: AcrossDevices) -> list[str]:
    """Below the table of devices: geometric means, who changed places, why a row has no speedup."""
    remarks = []
    if across.means and len(across.shared) > 1:
        first = letter(across.runs[0])
        phrases = [f"{letter(run)} {terminal.interval_text(mean)}" for run, mean in across.means.items()]
        over = [f"{letter(run)} over {first} {terminal.interval_text(each)}" for run, each in across.against.items()]
        remarks.append(f"geometric mean speedup over the {len(across.shared)} candidates that all have: "
                       f"{', '.join(phrases)}; {', '.join(over)}")
    if across.shared:
        phrases = [f"{name} ({', '.join(f'{across.places[run][name]} in {letter(run)}' for run in across.runs)})"
                   for name in across.moved]
        remarks.append(f"places among those: {'; '.join(phrases) or 'the same on all'}")
    return remarks + failed_remarks(across)


def failed_remarks(across: AcrossDevices) -> list[str]:
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


def figure_blocks(compared: Compared, across: AcrossDevices, show: Sequence[Figure]) -> list[list[Column]]:
    """Return the names, then the columns of each device, then the ratios of each pair of devices."""
    rows, runs = rows_with_baseline(across), across.runs
    blocks = [[Column("candidate", "left", [name_text(compared, row) for row in rows])]]
    cells = {figure.name: _cells(figure, rows, runs) for figure in show}
    for place, run in enumerate(runs):
        device = terminal.shortened(compared.joined.runs[run].device_name, _LONGEST_DEVICE)
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
        titles = [f"{letter(other)}/{letter(one)}", *[""] * (len(show) - 1)]
        blocks.append([Column(f"{title}\n{figure.title}", "right", [
            terminal.ratio_text(ratio_of(figure, row.records[one], row.records[other])) for row in rows
        ]) for title, figure in zip(titles, show)])
    return blocks


def figure_remarks(compared: Compared, across: AcrossDevices, show: Sequence[Figure]) -> list[str]:
    """Return the sentences below the table: clocks and limits, how to get what is missing, rows without a ratio."""
    rows, remarks = rows_with_baseline(across), []
    for run in across.runs:
        records = [record for record in _of(rows, run) if record is not None and record.status is Status.OK]
        readings = [f"{what} {_span(records, column)} {unit}" for what, column, unit in (
            ("SM clock", "sm_mhz", "MHz"), ("memory clock", "mem_mhz", "MHz"), ("power limit", "power_limit_w", "W"),
        ) if any(getattr(record, column) for record in records)]
        remarks.append(f"{letter(run)}: {', '.join(readings) or 'no clock and no power limit were recorded'}")
    a, b = map(letter, across.runs[:2])
    remarks.append(f"{b}/{a} divides the figure of {b} by that of {a}; such a ratio has no interval, and clocks and power "
                   "limits are part of it")
    for figure in show:
        remarks += _missing(across, rows, figure)
    edited = [row.name for row in rows if any(
        row.records[one] and row.records[other] and not is_same_source(row.records[one], row.records[other])
        for one, other in combinations(across.runs, 2)
    )]
    remarks += [f"{listed(edited)}: no ratio where two devices ran different sources"] if edited else []
    return remarks + failed_remarks(across)


def figures_json(across: AcrossDevices, show: Sequence[Figure]) -> dict[str, object]:
    """Return the same figures under stable keys, in the units of the records' columns."""
    figures = [
        {"candidate": row.name, "runs": {letter(run): standing(row.records[run], show) for run in across.runs},
         "ratios": {
             f"{letter(other)}/{letter(one)}": {
                 figure.name: ratio_of(figure, row.records[one], row.records[other]) for figure in show
             } for one, other in combinations(across.runs, 2)
         }} for row in rows_with_baseline(across)
    ]
    return {"show": [figure.name for figure in show], "figures": figures}


def standing(record: Record | None, show: Sequence[Figure]) -> dict[str, float | None]:
    """Return one row's figures on one device with its clocks and power limit."""
    clocks = {name: getattr(record, name) if record is not None else None for name in CLOCKS}
    return {**{figure.column: value_of(record, figure) for figure in show}, **clocks}


def _cells(figure: Figure, rows: Sequence[Row], runs: Sequence[int]) -> tuple[str, list[str]]:
    """Return a title, and the cells of one device after the other, in one unit and with the same decimals."""
    values = [value_of(record, figure) for run in runs for record in _of(rows, run)]
    if figure.name == "time":
        unit, texts = terminal.time_column(values)
        return f"time ({unit})" if unit else "time", texts
    if figure.name == "energy":
        smallest = min((each for each in values if each), default=1.0)
        unit, scale = next((each for each in _JOULES if smallest >= 0.2 * each[1]), _JOULES[-1])
        return f"energy ({unit})", terminal.number_column([each and each / scale for each in values], digits=4)
    texts = [terminal.percent_text(each) for each in values] if figure.name == "sol" else terminal.number_column(values)
    return figure.title, texts


def _missing(across: AcrossDevices, rows: Sequence[Row], figure: Figure) -> list[str]:
    """Return one sentence where an ok row lacks the figure, with what brings it."""
    lacking = [letter(run) for run in across.runs for record in _of(rows, run)
               if record is not None and record.status is Status.OK and value_of(record, figure) is None]
    if not lacking:
        return []
    where = listed(list(dict.fromkeys(lacking)))
    command = f": {PROGRAM} problems/{across.case.problem}.yaml --energy" if figure.name == "energy" else ""
    how = f"{figure.needs}{command}"
    return [f"{figure.title}: {len(lacking)} ok rows of {where} lack it; {how}"]


def _span(records: Sequence[Record], column: str) -> str:
    values = list(filter(None, (getattr(record, column) for record in records)))
    lo, hi = f"{min(values):,.0f}", f"{max(values):,.0f}"
    return lo if lo == hi else f"{lo} to {hi}"


def _of(rows: Sequence[Row], run: int) -> list[Record | None]:
    return [row.records[run] for row in rows]


def _status(record: Record | None) -> str:
    return "" if record is None or record.status is Status.OK else record.status.value
