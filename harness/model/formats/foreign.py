"""What a reader of a foreign form returns: the problem in the usual terms, and how its candidates are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.model.errors import InputError
from harness.model.files.python_source import SourceFault, parsed, top_level_names


@dataclass(frozen=True)
class Written:
    """A candidate in the usual form: its `source`, and the `files` (name and text) that it imports."""

    source: str
    files: tuple[tuple[str, str], ...] = ()


class CandidateForm(Protocol):
    """How the candidates of a foreign problem are told from other files, and written as modules with `ModelNew`. Files
    with this `suffix` are looked at; `wanted` says in a sentence what a person would put there.
    """

    suffix: str
    wanted: str

    def holds(self, path: Path) -> bool:
        """Return whether the file is a candidate for this problem."""
        ...

    def written(self, path: Path, text: str) -> Written:
        """Return the candidate whose file has this `text`. Raises InputError for what cannot be run."""
        ...


@dataclass(frozen=True)
class Foreign:
    """A foreign problem: `source` is the text of its reference as a KernelBench module. `timed` and `checks` are sizes,
    which all have the same names; `folders` may hold candidates; `text` is everything that the problem was read from.
    """

    name: str
    title: str
    dtype: str
    source: str
    text: str
    timed: dict[str, int]
    checks: tuple[dict[str, int], ...]
    folders: tuple[Path, ...]
    form: CandidateForm


def require_functions(text: str, wanted: Sequence[str], path: Path | str, key: str | None = None) -> None:
    """Raise InputError unless the Python `text` defines the functions `wanted`. It is all of `path`, or its field `key`."""
    try:
        names = top_level_names(parsed(text))
    except SourceFault as fault:
        if key is not None:
            raise InputError(f"line {fault.line} of '{key}': {fault.message}", path) from None
        raise InputError(fault.message, path, fault.line) from None
    whose = "" if key is None else f"'{key}' "
    for name in wanted:
        if not names.defines(name):
            raise InputError(f"{whose}defines no function {name}", path, hint=f"Write def {name}(…): in it")
