"""Whether an extension is what its sources say, asked by the process that compiled it and ran none of the candidate's code."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from harness.build.taken_in import TakenIn
from harness.model.files.carried_code import text_carries_code

# A zero, and how a source that is said to be preprocessed asks for a header that was compiled before.
_NO_SOURCES = (b"\0", b"pch_preprocess")
_HEAD_BYTES = 4096  # in which every object, library and archive has a zero


def why_unproven(taken: TakenIn, read: Collection[str], own: Iterable[str], flags: str, unsettled: Path | None) -> str:
    """Why nobody knows that; empty where it is so.

    `taken` is what assembler and linker took in, `read` what compilers read, and `own` what of that came with no toolchain: the
    candidate's headers, and what PyTorch wrote of its call. Those and the `flags` are looked at for machine code, whatever text
    the candidate's own file had. What lies below `unsettled` its process may write again before anybody looks. A library among
    what compilers read was embedded, whoever installed it.
    """
    if taken.silent:
        return f"{taken.silent[0]} did not tell all that its build took in (GCC's tools do, with binutils from 2.35 on)"
    if taken.foreign:
        return f"it has machine code that was not compiled from its sources: {taken.foreign[0][-200:]}"
    rewritten = sorted(below(unsettled, {*read, *taken.files})) if unsettled is not None else []
    if rewritten:
        return f"it was compiled from what the candidate wrote while it was imported: {_short(rewritten[0])}"
    embedded = [path for path in sorted(read) if _is_binary(path)]
    if embedded:
        return f"it has what a compiler read of a file that is no text: {_short(embedded[0])}"
    carrying = [path for path in sorted(own) if _carries_code(path)] or ["a flag"] * text_carries_code(flags)
    return f"its sources may carry machine code as bytes or as numbers: {_short(carrying[0])}" if carrying else ""


def below(folder: Path, paths: Iterable[str]) -> set[str]:
    """Those of `paths` that lead through `folder`, under any of its names, or where nobody can follow them."""
    beginning = f"{os.path.realpath(folder)}{os.sep}"

    @functools.cache  # most lie in a few folders
    def leads_through(place: str) -> bool:
        """A link below `folder` may lead elsewhere by now; what led to it has not changed."""
        real = f"{os.path.realpath(place)}{os.sep}"
        if real.startswith((beginning, "/proc/")):
            return True
        above = os.path.dirname(place)
        return above != place and leads_through(above)

    return {path for path in paths if leads_through(os.path.dirname(path)) or leads_through(path)}


def _is_binary(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"\0" in file.read(_HEAD_BYTES)
    except OSError:
        return False  # that of the candidate's own counts as code


def _carries_code(path: str) -> bool:
    """Whether a text does, or it is none: a header compiled before, a name for something else."""
    try:
        text = Path(path).read_bytes() if os.path.isfile(path) else b"\0"
    except OSError:
        return True
    return any(mark in text for mark in _NO_SOURCES) or text_carries_code(text.decode("utf-8", errors="replace"))


def _short(path: str) -> str:
    return os.path.basename(path)[:100]
