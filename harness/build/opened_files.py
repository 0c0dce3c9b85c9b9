"""The files that a candidate reads in Python while it is imported: sources that it hands to a compiler, modules of its
own.

They are part of what is built from as much as what the compilers read. What is installed, or part of the system, is
left out: the toolchain's versions speak for that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib.util import source_from_cache
from pathlib import Path
from typing import Any

from harness.build.installed_folders import below, installed_places, places_apart

# What the system itself consists of and tells of itself.
_SYSTEMS_OWN = ("/etc", "/proc", "/sys", "/dev", "/bin")
# A source is not as large; a table of weights is, and nothing is built from it. Those of all together are hashed again
# whenever the build is used.
_LARGEST_BYTES, _MOST_BYTES, _MOST_FILES = 16 << 20, 128 << 20, 1000


class OpenedFiles:
    """Notes what is opened for reading from here on; its `names` are those of the candidate's own.

    That is what lies neither below one of `left_out` nor where something is installed, and outside the candidate's
    folder not where modules were imported from before the candidate came. No folder that the candidate's lies in counts
    as such a place.
    """

    def __init__(self, candidate: Path, left_out: Iterable[Path]) -> None:
        self._candidate = os.path.realpath(candidate)
        folder = Path(self._candidate).parent
        self._folder = below(str(folder))
        self._left_out = *map(below, map(os.path.realpath, left_out)), *installed_places(folder, _SYSTEMS_OWN)
        self._imported_from = places_apart(sys.path, folder)
        self._opened: set[str] = set()
        self._folders: dict[str, str] = {}
        sys.addaudithook(self._heed)

    def names(self) -> list[str]:
        """The paths, links in their folders followed: the smallest, where they are more than anything is built from."""
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        paths = self._opened | {file for file in modules if isinstance(file, str)}
        sizes = {path: os.path.getsize(path) for path in map(self._real, paths) if self._is_own(path)}
        smallest_paths, left_bytes = [], _MOST_BYTES
        for path in sorted(sizes, key=lambda each: (sizes[each], each))[:_MOST_FILES]:
            left_bytes -= sizes[path]
            if left_bytes < 0:
                break
            smallest_paths.append(path)
        return smallest_paths

    def _heed(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], (str, bytes, os.PathLike)):
            return
        path, _, flags = arguments
        if not flags & os.O_WRONLY:
            self._opened.add(os.path.abspath(os.fsdecode(path)))

    def _real(self, path: str) -> str:
        """`path`, or the source of what was compiled, its folder's links followed, once for thousands of modules."""
        if path.endswith(".pyc"):
            with suppress(ValueError):
                path = source_from_cache(path)
        folder, _, name = path.rpartition(os.sep)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or os.sep)
        return os.path.join(self._folders[folder], name)

    def _is_own(self, path: str) -> bool:
        if path == self._candidate or f"{path}{os.sep}".startswith(self._left_out):
            return False
        if not path.startswith(self._folder) and path.startswith(self._imported_from):
            return False
        return os.path.isfile(path) and os.path.getsize(path) <= _LARGEST_BYTES
