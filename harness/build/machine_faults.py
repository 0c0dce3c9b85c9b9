"""What a machine lacks, where it looks like a candidate's failure: a C++ compiler, or room on a disk.

Words of a candidate's process only say where to look. Each fault is looked for again from here, out of its reach, and
counts only where it is there.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from harness.build.cache import ENVIRONMENT_VARIABLE
from harness.model.verdict import ReasonCode, Status, Verdict

_CXX_HINT = "bring one with: apt install g++, or set CXX to the one that you have"
# What torch.compile, PyTorch's extensions, Triton and the shells between them say where no compiler is.
_COMPILER_SIGNS = (
    "InvalidCxxCompiler", "No working C++ compiler", "Failed to find C compiler", "Failed to preprocess host compiler",
    "c++: not found", "g++: not found", "No such file or directory: 'c++'", "No such file or directory: 'g++'",
    "No such file or directory: 'gcc'",
)
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_DISK_SIGNS = tuple(os.strerror(number) for number in _DISK_ERRORS)
# A compiler that failed has removed what it wrote; an object with PyTorch's headers, and its library, take less.
_ROOM_BYTES = 256 << 20


def missing_compiler() -> str | None:
    """Why no C++ can be compiled on this machine; None where a compiler is there."""
    named = os.environ.get("CXX", "").strip()
    if named:
        try:
            words = shlex.split(named)
        except ValueError:  # an open quote
            words = named.split()
        return None if words and shutil.which(words[0]) else f"CXX names {named}, and there is no such program"
    return None if shutil.which("c++") or shutil.which("g++") else "neither c++ nor g++ is on the PATH"


def without_compiler() -> Verdict | None:
    """The verdict on whoever compiles C++ here; None where a compiler is there."""
    missing = missing_compiler()
    if missing is None:
        return None
    hint = "unset CXX, or name a C++ compiler in it" if missing.startswith("CXX") else _CXX_HINT
    return Verdict(Status.SKIPPED, ReasonCode.NO_CXX, f"there is no C++ compiler here ({missing}); {hint}")


def without_room(folders: Iterable[Path]) -> Verdict | None:
    """The verdict on whoever writes into `folders`; None where each of them takes what a build takes."""
    for folder in folders:
        fault = _write_fault(folder)
        if fault is not None:
            hint = f"free some, or name other folders in {ENVIRONMENT_VARIABLE} and TMPDIR"
            reason = f"{folder} on this machine cannot be written ({fault}); {hint}"
            return Verdict(Status.SKIPPED, ReasonCode.NO_DISK, reason)
    return None


def machine_fault(output: str, folders: Iterable[Path]) -> Verdict | None:
    """The verdict on a process that failed with the words `output`, where it failed for what the machine lacks, else
    None. `folders` are those that it wrote to, besides the temporary one.
    """
    verdict = without_compiler() if any(sign in output for sign in _COMPILER_SIGNS) else None
    if verdict is None and any(sign in output for sign in _DISK_SIGNS):
        verdict = without_room([*folders, Path(tempfile.gettempdir())])
    return verdict


def _write_fault(folder: Path) -> str | None:
    """Why a build has no room in `folder`, or cannot write there."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, _ROOM_BYTES)
    except OSError as error:
        is_told = error.errno in (*_DISK_ERRORS, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR)
        return (error.strerror or str(error)) if is_told else None  # a file system may know no such call
    return None
