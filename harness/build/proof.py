"""Whether an extension is what its sources say, asked by the process that compiled it and ran none of the candidate's code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from harness.build.taken_in import TakenIn
from harness.model.files.carried_code import text_carries_code


def why_unproven(taken: TakenIn, read: Iterable[str], own: Iterable[str], flags: str, unsettled: Path | None) -> str:
    """Why nobody knows that; empty where it is so.

    `taken` is what assembler and linker took in, `read` what compilers read, and `own` what of that came with no toolchain: the
    candidate's headers, and what PyTorch wrote of its call. Those and the `flags` are looked at for machine code, whatever text
    the candidate's own file had. What lies below `unsettled` its process may write again before anybody looks.
    """
    if taken.silent:
        return f"of its build {taken.silent[0]} did not tell what it took in (GCC's do, with binutils from 2.35 on)"
    if taken.foreign:
        return f"it has machine code that was not compiled from its sources: {taken.foreign[0][-200:]}"
    rewritten = [path for path in sorted({*read, *taken.files}) if unsettled is not None and is_below(path, unsettled)]
    if rewritten:
        return f"it was compiled from what the candidate wrote while it was imported: {_short(rewritten[0])}"
    carrying = [path for path in sorted(own) if _carries_code(path)] or ["a flag"] * text_carries_code(flags)
    return f"its sources may carry machine code as bytes or as numbers: {_short(carrying[0])}" if carrying else ""


def is_below(path: str, folder: Path) -> bool:
    """Whether it leads through `folder`, now or by its name, or where nobody can follow it."""
    real = os.path.realpath(path)
    return any(str(folder) in each for each in (path, os.path.normpath(path), real)) or real.startswith("/proc/")


def _carries_code(path: str) -> bool:
    try:
        return text_carries_code(Path(path).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return True


def _short(path: str) -> str:
    return os.path.basename(path)[:100]
