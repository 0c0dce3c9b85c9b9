"""The errors that a person at the keyboard may see, and the exit code of each.

    HarnessError                 something went wrong that we can put in words          exit 1
    ├── InputError               a file, a key, a flag of the user's is wrong           exit 2
    ├── NothingToRun             no device, or nothing left after --only and --skip     exit 4
    │   └── DeviceBusy           another run has the device for longer than one waits   exit 4
    └── NoRoom                   a call of the reference does not fit on the device     exit 4

A candidate that fails is never an error of the run: it is a record (see `verdict`).
"""

from __future__ import annotations

from pathlib import Path


class HarnessError(Exception):
    """Base of every error with a message for the user; `exit_code` is what the process ends with."""

    exit_code = 1


class InputError(HarnessError):
    """Raised when a file, key, value or flag that the user gave cannot be used. `path` and `line` say where (1-based),
    `hint` what to type instead; the text reads ``path:line: message. hint``.
    """

    exit_code = 2

    def __init__(
        self, message: str, path: Path | str | None = None, line: int | None = None, hint: str | None = None
    ) -> None:
        self.message, self.path, self.line, self.hint = message, path, line, hint
        where = "" if path is None else f"{path}:{line}: " if line is not None else f"{path}: "
        text = where + message
        super().__init__(f"{text.rstrip('.')}. {hint}" if hint else text)


class NothingToRun(HarnessError):
    """Raised when no candidate could be run at all: no device for any, or none selected."""

    exit_code = 4


class DeviceBusy(NothingToRun):
    """Raised when another run still has the device after as long as this one was to wait."""


class NoRoom(HarnessError):
    """Raised when a device has no memory for a problem at its sizes, whatever is given up; another may have room."""

    exit_code = 4
