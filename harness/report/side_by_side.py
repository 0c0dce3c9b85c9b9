"""Draws a comparison: what did not match, what differs, then a table per problem, a block of columns per run.

A table that is too wide for the terminal is broken between blocks, never inside one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.records.comparison import Case, Comparison, Difference, Regression, Row, change_between
from harness.records.ranking import class_of
from harness.records.schema import Record
from harness.report import terminal
from harness.report.table import Column, table_text, table_width
from harness.spelling import listed
from harness.reading.text_files import shown
from harness.verdict import Status

_LONGEST_NAME = 32
_LONGEST_DEVICE = 24


def render(comparison: Comparison, notes: Sequence[str] = (), *, width: int | None = 140) -> str:
    """The comparison as text, without a newline at its end; `notes` are on files that were passed over."""
    lines = [
        f"{letter(number)}  {run.device_name} · {terminal.date_text(run.utc)} · {shown(run.path)}"
        for number, run in enumerate(comparison.runs)
    ]
    lines += _section("Passed over", notes, width)
    unmatched = [text for case in comparison.cases for text in _unmatched(case)]
    lines += _section("Did not match", unmatched, width) or ["", "Did not match: nothing"]
    differences = [_difference(each) for each in comparison.differences]
    lines += _section("Differs between the runs", differences, width) \
        or ["", "Differs between the runs: nothing that was recorded"]
    shared = [case for case in comparison.cases if len(case.runs) > 1]
    for case in shared:
        lines += ["", _title(case), ""]
        nothing = ["  no candidate's source is in two of these runs", ""]
        lines += _tables(comparison, case, width) if case.rows else nothing
        lines += [line for text in _remarks(comparison, case) for line in terminal.indented(text, width)]
        while not lines[-1]:
            lines.pop()
    if not shared:
        lines += ["", "No two of these runs share a problem with its sizes and dtype: nothing to compare."]
    lines += _section("Slower or lost on the same device", map(_regression, comparison.regressions()), width)
    return "\n".join(lines)


def letter(run: int) -> str:
    """The name of a run in the output: A, B, … Z, then R27 and so on."""
    return chr(ord("A") + run) if run < 26 else f"R{run + 1}"


def result_text(record: Record) -> str:
    """What a run says of a candidate, in a few words: its speedup with the interval, or its status."""
    text = terminal.ratio_text(record.speedup, record.speedup_lo, record.speedup_hi)
    if record.status is Status.UNSURE:
        return f"{text} unsure".strip()
    return (text or "ok, no speedup") if record.status is Status.OK else record.status.value


def _title(case: Case) -> str:
    return " · ".join(part for part in (case.problem, case.sizes, case.dtype) if part)


def _section(title: str, texts: Iterable[str], width: int | None) -> list[str]:
    lines = [line for text in texts for line in terminal.indented(text, width)]
    return ["", f"{title}:", *lines] if lines else []


def _unmatched(case: Case) -> list[str]:
    if len(case.runs) == 1:
        names = [each.name for each in case.unmatched] or ["its baseline"]
        return [f"{_title(case)}: only in {letter(case.runs[0])} ({listed(names)})"]
    texts = []
    for each in case.unmatched:
        if each.edited:
            found = [f"{letter(run)} has {(record.source_hash or '?')[:8]}, {result_text(record)}"
                     for run, record in each.found]
            texts.append(f"{each.name}: its source was edited, so it is not joined: {'; '.join(found)}")
        else:
            [(run, record)] = each.found
            texts.append(f"{each.name}: only in {letter(run)} ({result_text(record)})")
    return texts


def _difference(difference: Difference) -> str:
    holders: dict[str, list[str]] = {}
    for run, value in enumerate(difference.values):
        holders.setdefault("not recorded" if value is None else value, []).append(letter(run))
    return f"{difference.name}: " + "; ".join(f"{', '.join(who)}: {text}" for text, who in holders.items())


def _regression(found: Regression) -> str:
    before, now, record = letter(found.reference), letter(found.run), found.record
    if found.change.verdict == "lost":
        reason = terminal.one_line(record.reason or "no reason was recorded")
        return f"{found.name}: ok in {before}, {record.status.value} in {now}: {reason}"
    per_cent = 100 * (1 - found.change.ratio)
    text = f"its speedup is {per_cent:.2g} % lower in {now} than in {before}"
    return f"{found.name}: {text}, and the intervals do not overlap"


def _tables(comparison: Comparison, case: Case, width: int | None) -> list[str]:
    """The case's table, as lines; as many blocks beside each other as fit, at least one."""
    names = Column("candidate", "left", [_name_cell(comparison, row) for row in case.rows])
    groups: list[list[Column]] = []
    for run in case.runs:
        block = _block(comparison, case, run)
        if groups and (width is None or table_width([*groups[-1], *block]) <= width):
            groups[-1] += block
        else:
            groups.append([names, *block])
    lines: list[str] = []
    for group in groups:
        lines += [*table_text(group).splitlines(), ""]
    return lines


def _name_cell(comparison: Comparison, row: Row) -> str:
    """The name, with a word for what is no candidate: a baseline, or one outside the ranking's class."""
    name = terminal.shortened(terminal.one_line(row.name), _LONGEST_NAME)
    for run, record in zip(comparison.runs, row.records):
        if record is not None and record.role == "baseline":
            outside = record.precision_class not in (None, class_of(run.records))
            return f"{name} ({'outside class' if outside else 'baseline'})"
    return name


def _block(comparison: Comparison, case: Case, run: int) -> list[Column]:
    """The columns of one run: speedup over its own baseline, % of its own speed of light, rank, change."""
    records = [row.records[run] for row in case.rows]
    baselines = sorted({record.baseline for record in records if record is not None and record.baseline})
    over = f"speedup over {baselines[0]}" if len(baselines) == 1 else "speedup"
    device = terminal.shortened(comparison.runs[run].device_name, _LONGEST_DEVICE)
    results = ["" if each is None else result_text(each) for each in records]
    columns = [
        Column(f"{letter(run)}: {device}\n{over}", "left", results),
        Column("\n% SOL", "right", [_sol_cell(each) for each in records]),
        Column("\nrank", "right", [str(each.rank or "") if each else "" for each in records]),
    ]
    reference = comparison.reference_of(run, case)
    if reference is not None:
        pairs = [(row.records[reference], row.records[run]) for row in case.rows]
        title = f"{letter(run)} against\n{letter(reference)}"
        columns.append(Column(title, "left", [_change_cell(*pair) for pair in pairs]))
    return [each for each in columns if each.title != "\n% SOL" or any(each.cells)]


def _sol_cell(record: Record | None) -> str:
    return terminal.percent_text(record.percent_of_sol) if record and record.status is Status.OK else ""


def _change_cell(before: Record | None, now: Record | None) -> str:
    change = change_between(before, now)
    if change is None:
        return ""
    words = {"overlap": "intervals overlap", "unknown": "no interval", "lost": "not ok now", "won": "now ok"}
    word = words.get(change.verdict, change.verdict)
    return word if change.ratio is None else f"{terminal.ratio_text(change.ratio)} {word}"


def _remarks(comparison: Comparison, case: Case) -> list[str]:
    """Below a table: how its baseline moved between runs on one device, and why a row has no speedup."""
    remarks = []
    for run in case.runs:
        reference = comparison.reference_of(run, case)
        if reference is not None:
            remarks += _baseline_moved(comparison, case, reference, run)
    for row in case.rows:
        where: dict[str, list[str]] = {}
        for run in case.runs:
            record = row.records[run]
            if record is not None and record.status is not Status.OK:
                reason = (record.reason or "no reason was recorded").strip().splitlines()[0]
                where.setdefault(f"{record.status.value}: {reason}", []).append(letter(run))
        remarks += [f"{row.name} in {listed(runs)}: {why}" for why, runs in where.items()]
    return remarks


def _baseline_moved(comparison: Comparison, case: Case, reference: int, run: int) -> list[str]:
    """A sentence when the baseline itself took another time, for a change of the speedups includes it."""
    before, now = (_baseline_time(comparison, case, number) for number in (reference, run))
    if before is None or now is None or abs(now / before - 1) < 0.005:
        return []
    old, new = letter(reference), letter(run)
    return [
        f"the baseline took {terminal.time_text(before)} in {old} and {terminal.time_text(now)} in {new} "
        f"({100 * (now / before - 1):+.1f} %): the changes of {new} against {old} include that"
    ]


def _baseline_time(comparison: Comparison, case: Case, run: int) -> float | None:
    """The median over the case's rows of the baseline's time in the run."""
    records = (row.records[run] for row in case.rows)
    times = sorted(record.baseline_us for record in records if record is not None and record.baseline_us)
    return times[len(times) // 2] if times else None
