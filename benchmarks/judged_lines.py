"""What was judged, as JSON lines: appended one by one, so that a kill costs at most the line being written; read again to
go on; merged from several files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.model.errors import InputError

Line = Mapping[str, Any]
LONGEST_REASON = 400


def key_of(line: Line) -> tuple[str, str, float | None, bool]:
    """What makes two lines answers to one question: problem, candidate, memory that was allowed, sizes as given or shrunk.
    """
    return line["problem"], line["candidate"], line.get("memory_gb"), bool(line.get("is_shrunk"))


def read_lines(paths: Iterable[Path], *, of_each_device: bool = False) -> list[dict[str, Any]]:
    """The lines of these files, of two with the same key the one that was written last, or of two `of_each_device`; a torn
    line is left out.

    Raises InputError for a file that cannot be read.
    """
    latest: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in paths:
        try:
            texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", path) from None
        for line in filter(None, map(_parsed, texts)):
            key = (*key_of(line), line.get("device_name") if of_each_device else None)
            if key not in latest or latest[key]["utc"] <= line["utc"]:
                latest[key] = line
    return list(latest.values())


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    is_whole = isinstance(line, dict) and {"problem", "candidate", "status", "utc"} <= line.keys()
    return line if is_whole else None


class LineFile:
    """A file that lines are appended to. Raises InputError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", path) from None
        end = os.lseek(self._descriptor, 0, os.SEEK_END)
        if end and os.pread(self._descriptor, 1, end - 1) != b"\n":
            os.write(self._descriptor, b"\n")  # what a kill left of a line stays a line by itself

    def append(self, line: Line) -> None:
        """Add one line and have it on the disk."""
        os.write(self._descriptor, (json.dumps(line) + "\n").encode())
        os.fsync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)
