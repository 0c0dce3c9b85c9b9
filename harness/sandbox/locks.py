"""Locks between runs, by files that may be written to and not read.

A lock can be taken by whoever can open its file, for reading too. Behind the sandbox nothing but a child's own folders
can be opened for writing; so a file that cannot be opened for reading either is out of every candidate's reach, and
none can keep anybody waiting. Without a sandbox a candidate can do what its user can.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

_POLL_S = 0.05
_FOR_ALL, _FOR_OWNER = 0o222, 0o200


class Lock:
    """The lock that the file `path` stands for; one process has it at a time, until `release` or its end.

    With `for_all` other users of the machine share it. The file is made when it is first taken and stays.
    """

    def __init__(self, path: Path, *, for_all: bool = False) -> None:
        self._path, self._mode = path, _FOR_ALL if for_all else _FOR_OWNER
        self._descriptor: int | None = None

    def __enter__(self) -> Lock:
        self.take(None)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def is_taken(self) -> bool:
        """Whether it is this object's."""
        return self._descriptor is not None

    def take(self, timeout_s: float | None = 0.0) -> bool:
        """Whether it could be taken within `timeout_s` (None: ever). Raises OSError where the file cannot be opened."""
        if self.is_taken:
            return True
        descriptor = opened_to_lock(self._path, self._mode)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while not _locked(descriptor):
                left_s = _POLL_S if deadline is None else deadline - time.monotonic()
                if left_s <= 0:
                    return False
                time.sleep(min(left_s, _POLL_S))
            with contextlib.suppress(OSError):
                os.utime(descriptor)  # whoever waits reads from the file's time since when it is taken
            self._descriptor, descriptor = descriptor, None
        finally:
            if descriptor is not None:
                os.close(descriptor)
        return True

    def release(self) -> None:
        """Give it back; a second time does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def taken_at_s(self) -> float | None:
        """When it was last taken, in seconds since 1970; None where that cannot be told."""
        with contextlib.suppress(OSError):
            return self._path.stat().st_mtime
        return None

    def holder(self) -> int | None:
        """The number of the process that has it, None where nobody has or it cannot be told."""
        with contextlib.suppress(OSError, ValueError), open("/proc/locks", encoding="ascii") as table:
            stat = self._path.stat()
            place = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
            for line in table:
                words = line.split()  # 1: FLOCK ADVISORY WRITE 4711 08:01:1234 0 EOF
                if len(words) > 5 and words[1:6:4] == ["FLOCK", place] and int(words[4]) > 0:
                    return int(words[4])
        return None


def opened_to_lock(path: Path, mode: int = _FOR_OWNER) -> int:
    """A descriptor of the file, made if need be, that nobody's reading can lock. Raises OSError."""
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        # Not with O_CREAT: in a folder that is everybody's, that refuses another user's file.
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, mode)
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, mode)  # past the umask, and for a file of an earlier version's
    return descriptor


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
