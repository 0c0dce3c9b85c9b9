"""Prints how long the sentences of each page are: `python benchmarks/prose.py`, or with the pages to read.

A sentence ends at a full stop, a question mark or an exclamation mark, and at the end of its paragraph or list item.
Code, tables, headings, comments and the targets of links are no prose. House style asks for at most 25 words.
"""

from __future__ import annotations

import re
import statistics
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
_NO_PROSE = re.compile(r"<!--[^>]*-->|^#.*$|^ *\|.*$|<img[^>]*>", re.MULTILINE)
_ENDS = re.compile(r"(?<=[.!?])[\"')*`\]]*\s+(?=[^\sa-z])")
_BEGINS_AN_ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ", re.MULTILINE)


def sentences(page: str) -> list[str]:
    """Return the sentences of a page in Markdown."""
    page = re.sub(r"\]\([^)]*\)", "]", page)
    prose = _BEGINS_AN_ITEM.sub("\n\n", re.sub(r"^```.*?^```", "\n\n", page, flags=re.MULTILINE | re.DOTALL))
    prose = _NO_PROSE.sub("\n\n", prose)
    paragraphs = (" ".join(each.split()) for each in re.split(r"\n\s*\n", prose))
    return [each for paragraph in paragraphs for each in _ENDS.split(paragraph) if re.search(r"\w", each)]


def lengths(page: str) -> list[int]:
    """Return the number of words of each sentence, the shortest first."""
    return sorted(len(each.split()) for each in sentences(page))


def figures(page: str) -> tuple[int, float, int, int]:
    """Return the number of sentences, their mean length, the 90th percentile and the longest; zeros without any."""
    counted = lengths(page)
    if not counted:
        return 0, 0.0, 0, 0
    return len(counted), statistics.mean(counted), counted[int(0.9 * (len(counted) - 1))], counted[-1]


def main() -> None:
    pages = [Path(each) for each in sys.argv[1:]] or [
        REPOSITORY / "README.md", REPOSITORY / "AGENTS.md", *sorted((REPOSITORY / "docs").rglob("*.md")),
    ]
    print(f"{'page':44} lines  sentences  mean  p90  longest")
    for path in pages:
        text = path.read_text(encoding="utf-8")
        count, mean, p90, longest = figures(text)
        name = path.resolve().relative_to(REPOSITORY) if path.resolve().is_relative_to(REPOSITORY) else path
        print(f"{str(name):44} {len(text.splitlines()):5}  {count:9}  {mean:4.0f}  {p90:3}  {longest:7}")


if __name__ == "__main__":
    main()
