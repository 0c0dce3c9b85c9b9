"""What an untrusted process has left in a folder: reading a file of it, and deleting all of it.

A pipe in a file's place would keep its reader waiting for ever, so nothing but a regular file is read. A thousand
folders in one another end `shutil.rmtree`, which calls itself for each level, and it leaves behind what its owner has
locked. Here each folder's folders are moved up to the top first, so that no path is ever longer than two names.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

_OPEN_TO_OWNER = 0o700


def remove_tree(top: Path | str) -> None:
    """Delete the folder `top` and all below it; a link is not followed. Raises nothing: what cannot go, stays."""
    top = os.fspath(top)
    if os.path.islink(top):
        return
    names = (f"{secrets.token_hex(8)}-{number}" for number in count())
    stuck: set[str] = set()
    while folders := _emptied_of_files(top) - stuck:
        for folder in folders:
            inside = os.path.join(top, folder)
            for deeper in _emptied_of_files(inside):
                source = os.path.join(inside, deeper)
                _done(os.chmod, source, _OPEN_TO_OWNER)  # to be moved, it must be its owner's to write to
                _done(os.rename, source, os.path.join(top, next(names)))
            if not _done(os.rmdir, inside):
                stuck.add(folder)
    _done(os.rmdir, top)


def content_of(path: Path, most_bytes: int = -1) -> bytes:
    """The first `most_bytes` of a regular file (all of them for -1); empty for what is none or cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def folders_and_files(top: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below `top` that can be reached by its path; links are not followed. Raises nothing."""
    waiting = [os.fspath(top)]
    while waiting:
        for entry in _entries(waiting.pop()):
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def _emptied_of_files(folder: str) -> set[str]:
    """The names of the folders in `folder`, from which everything else was deleted."""
    _done(os.chmod, folder, _OPEN_TO_OWNER)
    folder_names = set()
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            folder_names.add(entry.name)
        else:
            _done(os.unlink, entry.path)
    return folder_names


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


def _done(action, *arguments) -> bool:  # noqa: ANN001, ANN002  one of os's functions on paths
    with suppress(OSError):
        action(*arguments)
        return True
    return False
