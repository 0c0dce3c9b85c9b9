"""Finds every run below the files and folders that a person names, none of them twice, and candidates' sources.

`compare` takes the newest run of each device; a report wants the older ones too, for its history.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.model.candidate import read_candidate
from harness.model.errors import InputError
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.results.reader import read_records
from harness.results.result_files import ResultFile

_HINT = f"`{PROGRAM} PROBLEM` writes some"


@dataclass(frozen=True)
class Gathered:
    """The runs from the oldest to the newest, and a sentence for each file that was passed over."""

    runs: tuple[ResultFile, ...]
    notes: tuple[str, ...]


def gather(paths: Iterable[Path | str]) -> Gathered:
    """Every run in `paths`: a file is a run, a folder all runs below it.

    Raises InputError for a path that is missing, for a named file that is no CSV of ours, and when there is no record
    at all. A file below a folder that cannot be read is passed over with a note: nobody named it.
    """
    runs: dict[Path, ResultFile] = {}
    notes: list[str] = []
    paths = [Path(path) for path in paths]
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or folder", path, hint=_HINT)
        for file in sorted(path.rglob("*.csv")) if path.is_dir() else [path]:
            if file.resolve() in runs:
                continue
            try:
                records = read_records(file, notes.append)
            except InputError as error:
                if not path.is_dir():
                    raise
                notes.append(f"passed over {error}")
                continue
            if records:
                runs[file.resolve()] = ResultFile(file, tuple(records))
            else:
                notes.append(f"passed over {file}: it has a header and no records")
    if not runs:
        unread = f" ({notes[0]})" if notes else ""
        raise InputError(f"there are no results here{unread}", paths[0] if paths else None, hint=_HINT)
    ordered = sorted(runs.values(), key=lambda run: (run.utc, str(run.path)))
    return Gathered(tuple(ordered), tuple(notes))


@dataclass(frozen=True)
class Source:
    """A file whose text has the hash that a record names."""

    path: str
    text: str


def find_sources(folders: Iterable[Path]) -> dict[str, Source]:
    """Every candidate file below `folders` by the hash of its source; folders that are missing hold none."""
    sources: dict[str, Source] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if path.name[0] not in "_." and path.is_file():
                candidate = read_candidate(path)
                sources.setdefault(candidate.source_hash, Source(str(shown(path)), candidate.source))
    return sources


def highlighted(text: str) -> str:
    """The Python source as HTML spans whose classes the page's style colours; everything in it is escaped."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(text, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True))
