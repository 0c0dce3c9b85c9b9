"""The files that a candidate reads in Python while it is imported: sources that it hands to a compiler, modules of its
own.

They are part of what is built from as much as what the compilers read. What is installed, or part of the system, is
left out: the toolchain's versions speak for that.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_SYSTEM = ("/usr", "/etc", "/proc", "/sys", "/dev", "/lib", "/lib64", "/bin")
# A source is not as large; a table of weights is, and nothing is built from it.
_LARGEST_BYTES = 16 << 20
_MOST = 1000


class OpenedFiles:
    """Notes what is opened for reading from here on; its `names` are those of the candidate's own.

    What lies below the candidate's folder is, unless it is installed there; elsewhere, what lies neither below one of
    `left_out` nor where modules were imported from before the candidate came.
    """

    def __init__(self, candidate: Path, left_out: Iterable[Path]) -> None:
        self._candidate = os.path.realpath(candidate)
        self._folder = _below(os.path.dirname(self._candidate))
        installed = {sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *map(str, left_out), *_SYSTEM}
        self._installed = tuple(_below(os.path.realpath(each)) for each in installed)
        self._imported_from = tuple(_below(os.path.realpath(each)) for each in sys.path)
        self._opened: set[str] = set()
        self._folders: dict[str, str] = {}
        sys.addaudithook(self._heed)

    def names(self) -> set[str]:
        """The paths, links in their folders followed."""
        modules = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        paths = self._opened | {file for file in modules if isinstance(file, str)}
        own = {path for path in map(self._real, paths) if self._is_own(path)} - {self._candidate}
        return set(sorted(own)[:_MOST])

    def _heed(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        path, _, flags = arguments
        if not flags & os.O_WRONLY:
            self._opened.add(os.path.abspath(os.fsdecode(path)))

    def _real(self, path: str) -> str:
        """`path` with the links in its folder followed, each folder once: there are thousands of modules."""
        folder, _, name = path.rpartition(os.sep)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder or os.sep)
        return os.path.join(self._folders[folder], name)

    def _is_own(self, path: str) -> bool:
        if f"{path}{os.sep}".startswith(self._installed) or path.endswith(".pyc"):
            return False
        if not path.startswith(self._folder) and path.startswith(self._imported_from):
            return False
        return os.path.isfile(path) and os.path.getsize(path) <= _LARGEST_BYTES


def _below(folder: str) -> str:
    return folder.rstrip(os.sep) + os.sep
