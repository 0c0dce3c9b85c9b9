"""One run against an earlier one of the same device: the columns of the table, and the sentences below it."""

from __future__ import annotations

from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.comparison_text import letter, name_text, result_text
from harness.report.next_step import settle
from harness.report.table import Column
from harness.results.changes import DRIFT, NOT_IN_BOTH, Change, Pair
from harness.results.comparison import Compared

_STYLES = {"FASTER": "green", "WON": "green", "SLOWER": "red", "LOST": "red", "UNSURE": "yellow"}
_MARGINS = {
    "control": "eager against itself was {margin} from 1 in one of the runs: what is less is no change",
    "canary": "canaries agree with themselves to {margin}: what is less is no change",
}


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
    outwards = 100 * (lo - 1) // step * step, -(-100 * (hi - 1) // step) * step
    return f"{text(100 * (ratio - 1))} % [{text(outwards[0])}, {text(outwards[1])}]"


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
        moved = []
        for name, unit, words in (
            ("canary_gbps", "GB/s", "copy bandwidth"), ("canary_tflops", "TFLOP/s", "multiply-add rate"),
        ):
            a, b = getattr(before, name), getattr(now, name)
            if a and b and abs(b / a - 1) > DRIFT:
                moved.append(f"{words} {terminal.number_text(a)} → {terminal.number_text(b)} {unit} "
                             f"({percent_change(b / a)})")
        if moved:
            return (f"the machine drifted between {letter(pair.reference)} and {letter(pair.run)}: {'; '.join(moved)}. "
                    "Speedups are free of that, for the baseline drifted with them")
        return None
    return None


def pair_columns(compared: Compared, pair: Pair, color: bool = False) -> list[Column]:
    """The columns that have anything to show."""
    old, new = letter(pair.reference), letter(pair.run)
    rows = [(row, change) for row, change in pair.changes if change.reason != NOT_IN_BOTH]
    by_time = any(change.basis == "time" for _, change in rows)
    columns = [
        Column("candidate", "left", [name_text(compared, row) for row, _ in rows]),
        Column(f"speedup in {old}", "left", [result_text(row.records[pair.reference]) for row, _ in rows]),
        Column(f"in {new}", "left", [result_text(row.records[pair.run]) for row, _ in rows]),
        Column("change of time" if by_time else "change", "left", [change_text(change) for _, change in rows]),
        Column("verdict", "left", [terminal.paint(each.verdict, _STYLES.get(each.verdict, "dim"), color)
                                   for _, each in rows]),
        Column("why", "left", [change.reason for _, change in rows]),
        Column("raw time", "left", [time_text(change) for _, change in rows]),
    ]
    return [each for each in columns if any(each.cells)]


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
