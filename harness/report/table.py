"""A table as columns of finished cells, fitted to the width of a terminal; tabulate draws the lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import tabulate

tabulate.MIN_PADDING = 0  # its two spaces per header cost a leaderboard of eleven columns a whole column


@dataclass(frozen=True)
class Column:
    """A title, which may have several lines, "left" or "right", and one text per row."""

    title: str
    align: str
    cells: list[str]


def table_text(columns: Sequence[Column]) -> str:
    """The columns as a table, without spaces at the ends of its lines."""
    text = tabulate.tabulate(
        list(zip(*(each.cells for each in columns))), headers=[each.title for each in columns], tablefmt="simple",
        colalign=[each.align for each in columns], disable_numparse=True,
    )
    return "\n".join(line.rstrip() for line in text.splitlines())


def table_width(columns: Sequence[Column]) -> int:
    """How wide the table comes out: the length of its line of dashes, which colours never lengthen."""
    return max(len(line) for line in table_text(columns).splitlines() if line.startswith("-"))


def fitted(
    columns: Sequence[Column], width: int | None, dropped_first: Sequence[str]
) -> tuple[list[Column], list[str]]:
    """The columns that fit `width`, and the titles of those left out: from `dropped_first`, in its order."""
    columns, left_out = list(columns), []
    for title in dropped_first:
        if width is None or table_width(columns) <= width:
            break
        if any(each.title == title for each in columns):
            columns = [each for each in columns if each.title != title]
            left_out.append(title)
    return columns, left_out
