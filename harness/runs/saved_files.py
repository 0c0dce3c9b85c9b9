"""Which candidates of some folders have been saved since the last look: their own file, or one beside it that they or
such a file name, in full or by a pattern, or import. Files are looked at, not waited for: what editors do on saving
differs, but in the end a file has another size or time. It counts once it has stayed so from one look to the next.
"""

from __future__ import annotations

import ast
import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from harness.model.candidate import Candidate, read_candidate
from harness.model.formats.foreign import CandidateForm

Stamp = tuple[int, int]
_LONGEST_TEXT_BYTES = 1 << 20
_PATTERN = re.compile(r"""(?<=["'/])[\w-]*\*[\w*?-]*\.[\w*?]+(?=["'])""")  # as glob takes the end of "kernels/**/*.cu"


@dataclass(frozen=True)
class _Source:
    """A text, and the words of the modules that it imports where it is Python, and the patterns of file names in it."""

    text: str
    imported: frozenset[str] = frozenset()
    patterns: frozenset[str] = frozenset()

    def names(self, path: Path) -> bool:
        """Whether it names the file, by itself or by a pattern such as "*.cu", or imports it as a module."""
        if path.name in self.text or any(fnmatchcase(path.name, pattern) for pattern in self.patterns):
            return True
        module = path.parent.name if path.stem == "__init__" else path.stem
        return path.suffix == ".py" and module in self.imported


class SavedFiles:
    """Looks at the candidates that `find` returns, in the order it returns them and in the `form` of their problem. A
    file must have stayed as it is for `quiet_s`; while one has not, it `is_moving`.
    """

    def __init__(
        self, folders: Sequence[Path], find: Callable[[], Sequence[Path]], quiet_s: float = 0.0,
        form: CandidateForm | None = None,
    ) -> None:
        self._folders, self._find, self._quiet_s, self._form = folders, find, quiet_s, form
        self.is_moving = False
        self._judged: dict[Path, str] = {}
        self._seen: dict[Path, tuple[Stamp, float]] = {}
        self._sources: dict[Path, tuple[Stamp, _Source]] = {}

    def changed(self) -> list[Candidate]:
        """The candidates to judge now: new ones, and those that differ from when they were last returned here."""
        now = {path: stamp for folder in self._folders for path, stamp in _stamps(folder).items()}
        seen_s = time.monotonic()
        quiet, seen = set(), {}
        for path, stamp in now.items():
            before, since_s = self._seen.get(path, (None, seen_s))
            seen[path] = stamp, since_s if before == stamp else seen_s
            if before == stamp and seen_s - since_s >= self._quiet_s:
                quiet.add(path)
        moving = set(now) - quiet
        self._seen, self.is_moving = seen, bool(moving)
        candidates = []
        for path in (each for each in self._find() if each in quiet):
            candidate = read_candidate(path, form=self._form)
            beside = self._beside(path, now)
            if moving.intersection(beside):
                continue
            key = f"{candidate.source_hash} {[(str(each), now[each]) for each in beside]}"
            if self._judged.get(path) != key:
                self._judged[path] = key
                candidates.append(candidate)
        self._judged = {path: key for path, key in self._judged.items() if path in now}
        return candidates

    def _beside(self, path: Path, now: dict[Path, Stamp]) -> list[Path]:
        """The files that the candidate in `path` names, and those that they name."""
        paths, waiting = {path}, [path]
        while waiting:
            reader = waiting.pop()
            known = self._sources.get(reader)
            if known is None or known[0] != now[reader]:
                known = self._sources[reader] = now[reader], _read(reader, now[reader])
            named = [each for each in now.keys() - paths if known[1].names(each)]
            paths.update(named)
            waiting += named
        return sorted(paths - {path})

    def forget(self, name: str) -> None:
        """Return the candidate of this name again from the next look, whether it was saved or not."""
        self._judged = {path: key for path, key in self._judged.items() if path.stem != name}

    @property
    def candidates(self) -> set[str]:
        """The names of those that were returned and are still there."""
        return {path.stem for path in self._judged}


def _read(path: Path, stamp: Stamp) -> _Source:
    """What a text file says; nothing where it is too long to be a source, or gone."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace") if stamp[1] <= _LONGEST_TEXT_BYTES else ""
    except OSError:
        text = ""
    if path.suffix != ".py":
        return _Source(text)
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = []  # it is judged again once it is mended
    names = [alias.name for node in nodes for alias in node.names]
    names += [getattr(node, "module", None) or "" for node in nodes]
    imported = frozenset(word for name in names for word in name.split("."))
    return _Source(text, imported, frozenset(_PATTERN.findall(text)))


def _stamps(folder: Path) -> dict[Path, Stamp]:
    """Time and size of every file below `folder` that is not hidden; what vanishes meanwhile is left out."""
    stamps: dict[Path, Stamp] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        for path in (Path(place, name) for name in names if name[0] != "."):
            with suppress(OSError):
                status = path.stat()
                if stat.S_ISREG(status.st_mode):
                    stamps[path] = status.st_mtime_ns, status.st_size
    return stamps
