"""What a reader of a foreign form returns: the problem in the usual terms, and how its candidates are written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Written:
    """A candidate in the usual form: its `source`, and the `files` (name and text) that it imports."""

    source: str
    files: tuple[tuple[str, str], ...] = ()


class CandidateForm(Protocol):
    """How the candidates of a foreign problem are told from other files, and written as modules with `ModelNew`.

    Files with this `suffix` are looked at; `wanted` says in a sentence what a person would put there.
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
    """A foreign problem: `source` is the text of its reference as a KernelBench module.

    `timed` and `checks` are sizes, which all have the same names; `folders` may hold candidates; `text` is everything
    that the problem was read from.
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
