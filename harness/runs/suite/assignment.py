"""Whose candidate is it? The files of one folder given to the problems of a suite, by their names.

Three ways to name them, which may stand beside each other: a folder for each problem (`15_x/anything.py`), the
problem's name in front (`15_x.py`, `15_x_mine.py`), and KernelBench's own names for what a model wrote
(`level_1_problem_15_sample_0_kernel.py` is for `level1/15_….py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.candidate import candidate_files
from harness.model.errors import InputError
from harness.model.files.text_files import shown
from harness.model.problem import Problem

_GENERATED = re.compile(r"level_(\d+)_problem_(\d+)_sample_\d+.*")
_LEVEL = re.compile(r"level[_-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Owned:
    """The candidate files of each problem (by its name), and those that belong to none."""

    files: dict[str, tuple[Path, ...]]
    nobodys: tuple[Path, ...]


def owned_files(problems: Sequence[Problem], folder: Path) -> Owned:
    """The files of `folder` by problem. Raises InputError when there is no such folder."""
    if not folder.is_dir():
        hint = "Name a folder with --candidates DIR"
        raise InputError("there is no such folder of candidates", shown(folder), hint=hint)
    files: dict[str, dict[str, Path]] = {problem.name: {} for problem in problems}
    forms = {problem.name: problem.form for problem in problems}
    nobodys: list[Path] = []
    for entry in sorted(folder.iterdir()):
        if entry.name[0] in "._":
            continue
        if entry.is_dir():
            owner = entry.name if entry.name in files else None
            inside = candidate_files(entry, forms.get(entry.name))
        else:
            inside = [entry] if entry.suffix == ".py" else []
            owner = _owner(entry.stem, problems)
        if owner is None:
            nobodys += inside
        for path in inside if owner is not None else ():
            files[owner].setdefault(path.stem, path)
    return Owned({name: tuple(found.values()) for name, found in files.items()}, tuple(nobodys))


def own_files(problem: Problem) -> tuple[Path, ...]:
    """The candidates of a problem in folders of its own, `candidates/NAME`; none when there is no such folder."""
    files: dict[str, Path] = {}
    for folder in problem.candidate_folders:
        for path in candidate_files(folder, problem.form):
            files.setdefault(path.stem, path)
    return tuple(files.values())


def _owner(stem: str, problems: Sequence[Problem]) -> str | None:
    """The problem whose name the stem begins with, the longest such; or the one that KernelBench's name points at."""
    fitting = [
        problem.name for problem in problems
        if stem == problem.name or (stem.startswith(problem.name) and not stem[len(problem.name)].isalnum())
    ]
    if fitting:
        return max(fitting, key=len)
    generated = _GENERATED.fullmatch(stem)
    if generated is None:
        return None
    level, number = generated.groups()
    for problem in problems:
        folder = _LEVEL.fullmatch(problem.path.resolve().parent.name)
        if problem.name.split("_")[0] == number and (folder is None or folder.group(1) == level):
            return problem.name
    return None
