"""Candidates' sources, found again by their hash among the files that are still there, and coloured for the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.model.candidate import read_candidate
from harness.model.files.text_files import shown


@dataclass(frozen=True)
class Source:
    """A file whose text has the hash that a record names."""

    path: str
    text: str


def find_sources(folders: Iterable[Path]) -> dict[str, Source]:
    """Every candidate file below `folders` by the hash of its source; folders that are missing hold none."""
    found: dict[str, Source] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if path.name[0] not in "_." and path.is_file():
                candidate = read_candidate(path)
                found.setdefault(candidate.source_hash, Source(str(shown(path)), candidate.source))
    return found


def highlighted(text: str) -> str:
    """The Python source as HTML spans whose classes the page's style colours; everything in it is escaped."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
