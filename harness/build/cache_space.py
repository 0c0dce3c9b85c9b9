"""What the cache holds, what of it is in use, and making room in it: the least recently used goes first.

A run holds a lease on the cache while it lasts. What was used since the oldest living lease began is never removed, so
that no run loses a build between looking it up and loading it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import InputError
from harness.sandbox.leftovers import folders_and_files, remove_tree
from harness.sandbox.locks import Lock

LIMIT_VARIABLE = "KERNEL_REFEREE_CACHE_LIMIT"
DEFAULT_LIMIT_BYTES = 10 << 30
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Holding:
    """One thing that can be removed: `kind` is "CUDA", "C++", "Python", "Triton and Inductor" or "unfinished", and
    `used_s` when it was last used, in seconds since 1970.
    """

    kind: str
    path: Path
    size_bytes: int
    used_s: float


class Lease:
    """Says that a run uses the cache below `root`, until `end` or the death of this process. Raises OSError."""

    def __init__(self, root: Path) -> None:
        folder = root / "leases"
        folder.mkdir(parents=True, exist_ok=True)
        while True:
            self._path = folder / f"{os.getpid()}-{secrets.token_hex(8)}"
            self._lock = Lock(self._path)
            self._lock.take(None)
            if self._path.exists():
                return
            self._lock.release()  # another run took it for a dead one's before it was locked

    def end(self) -> None:
        """Give the lease back; a second time does nothing."""
        self._path.unlink(missing_ok=True)
        self._lock.release()


def limit_bytes() -> int:
    """The cache's limit: $KERNEL_REFEREE_CACHE_LIMIT, like 20G, else 10 GiB. Raises InputError for what is no size."""
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return DEFAULT_LIMIT_BYTES
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if match is None:
        raise InputError(f"{LIMIT_VARIABLE} is {text!r}, which is no size", hint="Write it like 500M or 20G")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def holdings(root: Path) -> list[Holding]:
    """Everything that the cache below `root` holds, the least recently used first."""
    found = [_holding(_kind_of(path), path) for path in _folders(root / "entries")]
    warm = [path for compiled_for in _folders(root / "warm") for path in _folders(compiled_for)]
    found += [_holding("Triton and Inductor", path) for path in warm]
    found += [_holding("unfinished", path) for path in _folders(root / "staging")]
    return sorted((each for each in found if each is not None), key=lambda each: each.used_s)


def remove(root: Path, chosen: Sequence[Holding]) -> list[Holding]:
    """Remove those of `chosen` that no living run uses. Returns what is gone. Raises nothing."""
    oldest_s = _oldest_lease_s(root)
    gone = []
    for each in chosen:
        # Looked up again: it may have been used since it was listed.
        now = _holding(each.kind, each.path)
        if now is not None and now.used_s < oldest_s and _remove_whole(root, each.path):
            gone.append(each)
    return gone


def make_room(root: Path, limit: int) -> list[Holding]:
    """Remove the least recently used until the cache is no larger than `limit` bytes. Returns what is gone."""
    held, count = holdings(root), 0
    over = sum(each.size_bytes for each in held) - limit
    while over > 0 and count < len(held):
        over -= held[count].size_bytes
        count += 1
    return remove(root, held[:count])


def _remove_whole(root: Path, path: Path) -> bool:
    """Take it out of sight in one step, then delete it: nobody finds half of it."""
    try:
        (root / "staging").mkdir(parents=True, exist_ok=True)
        grave = Path(tempfile.mkdtemp(prefix="removed-", dir=root / "staging"))
        os.rename(path, grave / "it")
    except OSError:
        return False
    remove_tree(grave)
    return True


def _oldest_lease_s(root: Path) -> float:
    """When the oldest run that still lives began, in seconds since 1970; now where none lives."""
    oldest_s = time.time()
    for path in _entries_of(root / "leases"):
        try:
            began_s, lock = path.stat().st_mtime, Lock(path)
            if lock.take():
                path.unlink(missing_ok=True)  # its run died without giving it back
                lock.release()
            else:
                oldest_s = min(oldest_s, began_s)
        except OSError:
            continue
    return oldest_s


def _holding(kind: str, path: Path) -> Holding | None:
    clock = path / "manifest.json" if path.parent.name == "entries" else path
    try:
        used_s = (clock if clock.exists() else path).stat().st_mtime
        size = sum(entry.stat(follow_symlinks=False).st_size for entry in folders_and_files(path))
    except OSError:
        return None  # another run removed it in this moment
    return Holding(kind, path, size, used_s)


def _kind_of(entry: Path) -> str:
    try:
        build = json.loads((entry / "manifest.json").read_text(encoding="utf-8"))["build"]
        by = str(build["built_by"])
    except (OSError, ValueError, KeyError, TypeError):
        return "unfinished"
    if by.startswith("nvcc"):
        return "CUDA"
    return "C++" if build["extensions"] else "Python"


def _folders(folder: Path) -> Iterator[Path]:
    return (path for path in _entries_of(folder) if path.is_dir() and not path.is_symlink())


def _entries_of(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
