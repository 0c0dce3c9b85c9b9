"""Draws a comparison for a terminal: what did not match and what differs, then for each problem the runs on one device
against the first of them, and the devices beside each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.model.files.text_files import shown
from harness.report import terminal
from harness.report.comparison_tables import (
    across_blocks, across_remarks, block_lines, device_texts, difference_text, figure_blocks, figure_remarks, letter,
    pair_columns, pair_remarks, refusal_texts, unmatched_texts,
)
from harness.report.table import fitted, table_text
from harness.results.across_devices import Figure, rows_with_baseline
from harness.results.changes import Pair
from harness.results.comparison import Compared
from harness.results.joined_runs import Case

_MOST_RUNS = 12  # listed one by one
_MOST_PAIRS = 3  # of one device, drawn in full; of more only the last


def render(compared: Compared, *, width: int | None = 140, color: bool = False, show: Sequence[Figure] = ()) -> str:
    """The comparison as text, without a newline at its end; devices stand beside each other by what is to `show`."""
    lines = _run_lines(compared)
    lines += _section("Noted", compared.notes, width)
    lines += _section("Did not match", unmatched_texts(compared), width) or ["", "Did not match: nothing"]
    lines += _section("Differs between the runs", map(difference_text, compared.joined.differences), width) \
        or ["", "Differs between the runs: nothing that was recorded"]
    lines += _section("Not compared, for they were measured by different methods (--force compares them all the same)",
                      refusal_texts(compared), width)
    drawn = 0
    for case in compared.joined.cases:
        blocks = _of_one_device(compared, case, width, color) + _of_several(compared, case, width, show)
        if blocks:
            drawn += 1
            lines += ["", terminal.paint(case.title, "bold", color), *blocks]
    if not drawn:
        lines += ["", "No two of these runs share a problem with its sizes and dtype: nothing to compare."]
    return "\n".join(lines)


def _run_lines(compared: Compared) -> list[str]:
    runs, devices = compared.joined.runs, device_texts(compared)
    numbers = list(range(len(runs)))
    if len(runs) > _MOST_RUNS:
        numbers = numbers[: _MOST_RUNS - 2] + numbers[-1:]
    lines = []
    for number in numbers:
        run = runs[number]
        if number and number - 1 not in numbers:
            lines.append(f"…  {len(runs) - len(numbers)} more runs")
        lines.append(f"{letter(number)}  {devices[number]} · {terminal.date_text(run.utc)} · {shown(run.path)}")
    return lines


def _section(title: str, texts: Iterable[str], width: int | None) -> list[str]:
    lines = [line for text in texts for line in terminal.indented(text, width)]
    return ["", f"{title}:", *lines] if lines else []


def _of_one_device(compared: Compared, case: Case, width: int | None, color: bool) -> list[str]:
    """The pairs of a case, device by device: all in full where they are few, else the last and a line for others."""
    by_reference: dict[int, list[Pair]] = {}
    for pair in compared.pairs:
        if pair.case is case and pair.changes:
            by_reference.setdefault(pair.reference, []).append(pair)
    lines: list[str] = []
    for pairs in by_reference.values():
        if len(pairs) > _MOST_PAIRS:
            *earlier, last = pairs
            lines += _history(compared, earlier, width)
            pairs = [last]
        lines += [line for pair in pairs for line in _pair_lines(compared, pair, width, color)]
    return lines


def _pair_lines(compared: Compared, pair: Pair, width: int | None, color: bool) -> list[str]:
    old, new = letter(pair.reference), letter(pair.run)
    columns, _ = fitted(pair_columns(compared, pair, color), width, ["raw time", f"speedup in {old}", f"in {new}"])
    title = f"  {new} against {old}, both on {compared.joined.runs[pair.run].device_name}"
    lines = ["", title, "", *table_text(columns).splitlines(), ""]
    return lines + [line for text in pair_remarks(compared, pair) for line in terminal.indented(text, width)]


def _history(compared: Compared, pairs: Sequence[Pair], width: int | None) -> list[str]:
    """One line for each earlier run in which anything changed."""
    texts = []
    for pair in pairs:
        counts = Counter(change.verdict for row, change in pair.changes if change.verdict and not row.is_baseline)
        if set(counts) - {"SAME", "UNSURE"}:
            words = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
            texts.append(f"{letter(pair.run)} ({terminal.date_text(compared.joined.runs[pair.run].utc)}): {words}")
    first = letter(pairs[0].reference)
    lines = ["", f"  {len(texts)} of {len(pairs)} runs between {first} and the last differ from {first}; the last ones:"
             if texts else f"  none of {len(pairs)} runs between {first} and the last differs from {first}"]
    return lines + [line for text in texts[-_MOST_RUNS:] for line in terminal.indented("  " + text, width)]


def _of_several(compared: Compared, case: Case, width: int | None, show: Sequence[Figure]) -> list[str]:
    lines: list[str] = []
    for across in (each for each in compared.across if each.case is case and len(each.runs) > 1):
        if show and rows_with_baseline(across):
            tables = block_lines(figure_blocks(compared, across, show), width)
            remarks = figure_remarks(compared, across, show)
        elif across.rows:
            tables, remarks = block_lines(across_blocks(compared, across), width), across_remarks(compared, across)
        else:
            tables, remarks = ["  no candidate's source is in two of these runs", ""], []
        lines += ["", *tables, *(line for text in remarks for line in terminal.indented(text, width))]
        while not lines[-1]:
            lines.pop()
    return lines
