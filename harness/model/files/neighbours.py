"""What lies beside a candidate and is no other's: the modules, sources and headers that it may read of its own folder.

Another candidate's are its file and all that bears its file's name: `other.py`, `other.yaml`, `other.cu`, `other/`.
What is left is common to all candidates of the folder: `_tiles.py`, `common.cuh`, `include/`.
"""

from __future__ import annotations

import functools
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

_NOT_FOR_CANDIDATES = ("__pycache__", "results")
_STAR = re.compile(rb"^[ \t]*from[ \t]+[\w.]+[ \t]+import[ \t]*\(?[ \t]*\*", re.MULTILINE)
_MOST_BYTES = 1 << 20  # of a candidate


class Places(NamedTuple):
    """What a candidate may read of its own folder, itself among it; and the folders, one or its link's target's too, of
    which it is to see nothing else.
    """

    own: list[Path]
    folders: list[Path]


def beside(candidate: Path) -> Places:
    """What lies in the folder of `candidate` and is no other's; where its file is a link, in the target's folder as
    well. In a folder that is more than one for candidates (a home, /tmp, a project) only what bears its own name.
    """
    files = dict.fromkeys((candidate.absolute(), candidate.resolve()))
    return Places([path for file in files for path in _own_beside(file)], [file.parent for file in files])


def _own_beside(candidate: Path) -> list[Path]:
    folder = candidate.parent
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return [candidate]
    others = {name[:-3] for name in names if name != candidate.name and _is_candidate(folder / name)}
    # A home, a folder for temporary files, or one that holds a project.
    shared = {os.path.realpath(each) for each in ("/", "/tmp", "/var/tmp", os.path.expanduser("~"))}
    is_for_more = os.path.realpath(folder) in shared or (folder / "problems").is_dir()
    paths = [candidate]
    for name in names:
        stem = name.partition(".")[0]
        if name.startswith(".") or name in _NOT_FOR_CANDIDATES or stem in others or name == candidate.name:
            continue
        if stem == candidate.stem or not (is_for_more or _holds_candidates(folder / name)):
            paths.append(folder / name)
    return paths


def _is_candidate(path: Path) -> bool:
    """Whether a run over its folder would take the file for a candidate that can work."""
    try:
        state = path.stat() if path.suffix == ".py" and path.name[0] not in "_." else None
    except OSError:
        return False
    is_file = state is not None and stat.S_ISREG(state.st_mode)  # of a pipe nobody may ever read anything
    return is_file and _may_define_it(str(path), state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=10_000)
def _may_define_it(path: str, changed_ns: int, size_bytes: int) -> bool:
    """Whether `ModelNew` may be what a file defines; its time and size are asked for so that it is read once."""
    try:
        text = Path(path).read_bytes() if size_bytes <= _MOST_BYTES else b""
    except OSError:
        return False
    return b"ModelNew" in text or _STAR.search(text) is not None


def _holds_candidates(path: Path) -> bool:
    return path.is_dir() and any(
        _is_candidate(Path(folder, name)) for folder, _, names in os.walk(path) for name in names
    )
