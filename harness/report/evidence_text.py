"""The evidence on a failed launch in words and letters: the first wrong elements, and where in the output they sit.

A triangle, the last row or every 32nd column names the bug to its author before any number does.
"""

from __future__ import annotations

from harness.model.sizes_text import sizes_text
from harness.reference.evidence import Evidence, Mistakes, Recipe, Spread
from harness.report import terminal
from harness.report.table import Column, table_text


def evidence_lines(evidence: Evidence) -> list[str]:
    """The evidence as lines, to stand below a verdict."""
    lines, mistakes = [launch_sentence(evidence.recipe)], evidence.mistakes
    if mistakes is None:
        return lines
    lines += [*where_sentences(mistakes), "", *elements_table(mistakes)]
    return lines if mistakes.wrong == mistakes.elements else [*lines, "", *picture_lines(mistakes)]


def launch_sentence(recipe: Recipe) -> str:
    """`found in a launch at M=31, inputs of the family signs`."""
    sizes = sizes_text(recipe.sizes) or "the reference's own sizes"
    inputs = "inputs as given" if recipe.family == "as given" else f"inputs of the family {recipe.family}"
    queued = f"launch {len(recipe.before) + 1} of {recipe.queued} queued together"
    return f"Found in {queued if recipe.queued > 1 else 'a single launch'}, at {sizes}, {inputs}."


def where_sentences(mistakes: Mistakes) -> list[str]:
    """How many elements are wrong, and what they have in common."""
    share = 100 * mistakes.wrong / mistakes.elements
    share_text = "over 99" if 99 < share < 100 else terminal.number_text(share, 2)
    how_many = "all" if mistakes.wrong == mistakes.elements else f"{mistakes.wrong:,} of {mistakes.elements:,}"
    percent = "" if how_many == "all" else f" ({share_text} %)"
    output = f"output {mistakes.output}, " if mistakes.output else ""
    shape = "×".join(map(str, mistakes.shape)) or "one number"
    off_by = f"off by more than {terminal.units_text(mistakes.allowed_u)} u"
    lines = [f"Wrong: {how_many}{percent} elements of {output}{shape} {mistakes.dtype}, {off_by}."]
    patterns = [text for text in (_triangle(mistakes), *_axes(mistakes)) if text]
    return [*lines, f"Where: {'; '.join(patterns)}."] if patterns else lines


def elements_table(mistakes: Mistakes) -> list[str]:
    """The first wrong elements in row-major order."""
    first = mistakes.first
    errors = [each.error_u if isinstance(each.error_u, str) else terminal.units_text(each.error_u) for each in first]
    return table_text([
        Column("element", "left", [str(list(each.index)) for each in first]),
        Column("got", "right", [_value(each.got) for each in first]),
        Column("expected", "right", [_value(each.expected) for each in first]), Column("off by (u)", "right", errors),
    ]).splitlines()


def picture_lines(mistakes: Mistakes) -> list[str]:
    """The picture in a frame, with the first and last row and column at its edges."""
    width = len(mistakes.picture[0])
    left = max(len(str(mistakes.rows.size - 1)), 1)
    last = str(mistakes.columns.size - 1)
    top = "0" + last.rjust(width - 1) if width > len(last) else "0"
    margin = " " * left
    lines = [f"{margin}  {top}", f"{margin} ┌{'─' * width}┐"]
    for number, line in enumerate(mistakes.picture):
        edge = 0 if number == 0 else mistakes.rows.size - 1 if number == len(mistakes.picture) - 1 else ""
        lines.append(f"{edge!s:>{left}} │{line}│")
    over = f", all {mistakes.batches.size:,} batches over each other" if mistakes.batches.size > 1 else ""
    return [*lines, f"{margin} └{'─' * width}┘", f"{margin}  blank: none wrong, . a few, @ all{over}"]


def _triangle(mistakes: Mistakes) -> str | None:
    """What the diagonal says, where the wrong elements keep to one side of it."""
    if mistakes.below_diagonal is None:
        return None
    below, on, above = mistakes.below_diagonal, mistakes.on_diagonal, mistakes.above_diagonal
    rows, columns, batches = mistakes.rows.size, mistakes.columns.size, mistakes.batches.size
    all_on = batches * min(rows, columns)
    all_below = batches * sum(min(row, columns) for row in range(rows))
    all_above = batches * rows * columns - all_on - all_below
    everything = "everything {} the diagonal and nothing else"
    return {  # by whether any is wrong below, on and above it
        (False, True, False): "the diagonal alone" if on == all_on else "on the diagonal alone",
        (False, False, True): everything.format("above") if above == all_above else "above the diagonal only",
        (True, False, False): everything.format("below") if below == all_below else "below the diagonal only",
        (False, True, True): "on and above the diagonal only", (True, True, False): "on and below the diagonal only",
    }.get((bool(below), bool(on), bool(above)))


def _axes(mistakes: Mistakes) -> list[str | None]:
    column = "element" if mistakes.rows.size == 1 else "column"
    return [_along(mistakes.batches, "batch", "batches"), _along(mistakes.rows, "row", "rows"),
            _along(mistakes.columns, column, f"{column}s")]


def _along(spread: Spread, one: str, many: str) -> str | None:
    """`only row 4095, the last`, `every 32nd column from 31`, `rows 96 to 127`; None where they are everywhere."""
    if spread.size == 1 or spread.count == spread.size:
        return None
    if spread.count == 1:
        place = {0: ", the first", spread.size - 1: ", the last"}.get(spread.first, "")
        return f"only {one} {spread.first}{place} of {spread.size:,}"
    if spread.step is not None and spread.step > 1 and spread.count > 2:
        return f"every {_ordinal(spread.step)} {one}, from {spread.first} to {spread.last}"
    reach = f"{many} {spread.first} to {spread.last} of {spread.size:,}"
    return reach if spread.step == 1 else f"{spread.count:,} of the {reach}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _value(value: float | int | bool | str) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value)
