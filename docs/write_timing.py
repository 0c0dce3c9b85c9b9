"""Puts the table of eager against itself into docs/design/timing.md: what benchmarks/against_itself.py --json wrote.

`python docs/write_timing.py` takes docs/figures/against_itself.json, or a file that is named, which it copies there.
The prose around the markers stays: read it again after it. tests/test_timing_page.py fails while the page is not what
the file says.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "benchmarks")]

from against_itself import read  # noqa: E402
from itself_table import HEADS, row_of, sentences  # noqa: E402

PAGE = REPOSITORY / "docs" / "design" / "timing.md"
FIGURES = REPOSITORY / "docs" / "figures" / "against_itself.json"
_BEGIN, _END = "<!-- against_itself: begin -->\n", "<!-- against_itself: end -->\n"


def page_with(page: str, body: dict[str, Any]) -> str:
    """`page` with the table of `body` between its markers. Raises ValueError for a page without them."""
    before, found, rest = page.partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    if not found or not ended:
        raise ValueError(f"{PAGE.name} has no markers {_BEGIN.strip()} and {_END.strip()}")
    return f"{before}{_BEGIN}{block_of(body)}{_END}{after}"


def block_of(body: dict[str, Any]) -> str:
    """Where and how it was measured, the table with a column for each size, and what is missed."""
    rows = [row_of(body["figures"], size, not body["is_cpu"]) for size in body["sizes"]]
    lines = [["", *(row[0].text for row in rows)], ["---"] * (len(rows) + 1)]
    lines += [[head, *(str(row[at]) for row in rows)] for at, head in enumerate(HEADS) if at]
    gpus = len(body["devices"])
    where = body["device"] if gpus == 1 else f"{gpus} {body['device']} at once"
    runs = [*body["earlier"], body]
    days = list(dict.fromkeys(each["utc"][:10] for each in runs))
    return "\n".join([
        "\n```sh", *(each["command"] for each in runs), "```\n",
        f"On {where}, PyTorch {body['torch']}, {' and '.join(days)}, `--config {body['config']}`:\n",
        *(f"| {' | '.join(cells)} |" for cells in lines), "",
        "In brackets what is aimed at on an H200, and ! where it is missed:\n",
        *(f"- {each}" for each in sentences(rows)), "\n",
    ])


def main() -> None:
    if len(sys.argv) > 1:
        FIGURES.parent.mkdir(exist_ok=True)
        given = Path(sys.argv[1]).read_bytes()
        FIGURES.write_bytes(given)
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), read(FIGURES)), encoding="utf-8")


if __name__ == "__main__":
    main()
