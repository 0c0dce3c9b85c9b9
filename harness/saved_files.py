"""Which candidates of a folder have been saved since the last look: their own file, or one beside it that they name or
import, or that such a file does.

Files are looked at, not waited for: what an editor does to a file on saving differs from one to the next, but in the
end it has another size or time. A file counts once it has stayed as it is from one look to the next.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.candidate import Candidate, read_candidate

Stamp = tuple[int, int]

_LONGEST_TEXT_BYTES = 1 << 20


class SavedFiles:
    """Looks at the candidates that `find` returns, in the order it returns them."""

    def __init__(self, folder: Path, find: Callable[[], Sequence[Path]]) -> None:
        self._folder, self._find = folder, find
        self._judged: dict[Path, str] = {}
        self._seen: dict[Path, Stamp] = {}
        self._texts: dict[Path, tuple[Stamp, str]] = {}

    def changed(self) -> list[Candidate]:
        """The candidates to judge now: new ones, and those that differ from when they were last returned here."""
        now = _stamps(self._folder)
        quiet = {path for path, stamp in now.items() if self._seen.get(path) == stamp}
        moving = set(now) - quiet
        self._seen = now
        found = []
        for path in self._find():
            if path not in quiet:
                continue
            candidate = read_candidate(path)
            beside = self._beside(candidate, now)
            if moving.intersection(beside):
                continue
            key = f"{candidate.source_hash} {[(str(each), now[each]) for each in beside]}"
            if self._judged.get(path) != key:
                self._judged[path] = key
                found.append(candidate)
        self._judged = {path: key for path, key in self._judged.items() if path in now}
        return found

    def _beside(self, candidate: Candidate, now: dict[Path, Stamp]) -> list[Path]:
        """The files that its source names, and those that they name."""
        found, waiting = {candidate.path}, [candidate.source]
        while waiting:
            source = waiting.pop()
            for path in now.keys() - found:
                if _names(source, path):
                    found.add(path)
                    waiting.append(self._text_of(path, now[path]))
        return sorted(found - {candidate.path})

    def _text_of(self, path: Path, stamp: Stamp) -> str:
        """What a text file says; nothing where it is too long to be a source, or gone."""
        known = self._texts.get(path)
        if known is None or known[0] != stamp:
            text = ""
            try:
                if stamp[1] <= _LONGEST_TEXT_BYTES:
                    text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                pass
            known = self._texts[path] = stamp, text
        return known[1]

    @property
    def candidates(self) -> set[str]:
        """The names of those that were returned and are still there."""
        return {path.stem for path in self._judged}


def _names(source: str, path: Path) -> bool:
    """Whether `source` names the file, or imports it as a module."""
    if path.name in source:
        return True
    if path.suffix != ".py":
        return False
    module = path.parent.name if path.stem == "__init__" else path.stem
    return re.search(rf"^[ \t]*(?:from|import)\b.*\b{re.escape(module)}\b", source, re.MULTILINE) is not None


def _stamps(folder: Path) -> dict[Path, Stamp]:
    """Time and size of every file below `folder` that is not hidden; what vanishes meanwhile is left out."""
    found: dict[Path, Stamp] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        for name in names:
            if name[0] == ".":
                continue
            path = Path(place, name)
            try:
                told = path.stat()
            except OSError:
                continue
            found[path] = told.st_mtime_ns, told.st_size
    return found
