"""Which candidates of a folder have been saved since the last look, their own file or one beside it that they name.

Files are looked at, not waited for: what an editor does to a file on saving differs from one to the next, but in the
end it has another size or time. A file counts once it has stayed as it is from one look to the next.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.candidate import Candidate, read_candidate

Stamp = tuple[int, int]


class SavedFiles:
    """Looks at the candidates that `find` returns, in the order it returns them."""

    def __init__(self, folder: Path, find: Callable[[], Sequence[Path]]) -> None:
        self._folder, self._find = folder, find
        self._judged: dict[Path, str] = {}
        self._seen: dict[Path, Stamp] = {}

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
            beside = sorted(each for each in now if each != path and each.name in candidate.source)
            if moving.intersection(beside):
                continue
            key = f"{candidate.source_hash} {[(str(each), now[each]) for each in beside]}"
            if self._judged.get(path) != key:
                self._judged[path] = key
                found.append(candidate)
        self._judged = {path: key for path, key in self._judged.items() if path in now}
        return found

    @property
    def candidates(self) -> set[str]:
        """The names of those that were returned and are still there."""
        return {path.stem for path in self._judged}


def _stamps(folder: Path) -> dict[Path, Stamp]:
    """Time and size of every file below `folder` that is not hidden; what vanishes meanwhile is left out."""
    found: dict[Path, Stamp] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "_."]
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
