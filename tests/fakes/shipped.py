"""The files that this repository ships: tests of them pass beside what a user adds to the same folders."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from harness.model.paths import REPOSITORY


def shipped(pattern: str) -> list[Path]:
    """The files below the repository that match the glob `pattern` and are git's; where it is no clone, all of them."""
    tracked = _tracked()
    return [path for path in sorted(REPOSITORY.glob(pattern)) if tracked is None or path in tracked]


@cache
def _tracked() -> frozenset[Path] | None:
    words = ["git", "-C", str(REPOSITORY), "ls-files", "-z"]
    try:
        listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return frozenset(REPOSITORY / name for name in listed.split("\0")) or None
