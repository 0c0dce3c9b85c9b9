"""The problem files that a person means by files, folders and globs, and whose candidate a file is, by its name.

Three ways to name candidates may stand beside each other: a folder for each problem (`15_x/anything.py`), the problem's
name in front (`15_x.py`, `15_x_mine.py`), and KernelBench's own names for what a model wrote
(`level_1_problem_15_sample_0_kernel.py` is for `level1/15_….py`).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.candidate import candidate_files
from harness.model.errors import HarnessError, InputError
from harness.model.files.text_files import shown
from harness.model.files.yaml_lines import YAML_SUFFIXES
from harness.model.formats import TASK_FILE, problem_in
from harness.model.problem import Problem, at_sizes, find_problem, in_mode, load_problem, over_baseline, with_baselines

_GENERATED = re.compile(r"level_(\d+)_problem_(\d+)_sample_\d+.*")
_LEVEL = re.compile(r"level[_-]?(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Loaded:
    """A problem file with its problem, or with the sentence that says why there is none."""

    path: Path
    problem: Problem | None
    fault: str | None = None


def is_suite(paths: Iterable[Path]) -> bool:
    """Whether these words mean more than one problem file: several, a folder that is no single problem, a glob."""
    paths = list(paths)
    return len(paths) > 1 or any(
        (path.is_dir() and problem_in(path) is None) or (glob.has_magic(str(path)) and not path.exists()) for path in paths
    )


def problem_paths(words: Iterable[Path]) -> list[Path]:
    """The problem files in the order of their names, numbers as numbers (2_x before 10_x), each once. A folder stands
    for its YAML files, or where there are none for its .py files. Raises InputError for a word that means nothing.
    """
    paths: dict[Path, Path] = {}
    for word in words:
        for path in _meant_by(word):
            paths.setdefault(path.resolve(), path)
    return sorted(paths.values(), key=lambda path: (_natural(str(path.parent)), _natural(path.name)))


def load_all(
    paths: Sequence[Path], candidates_dir: Path | None, mode: str | None = None, sizes: Sequence[str] = (),
    baselines: str | None = None, baseline: Path | None = None,
) -> list[Loaded]:
    """Every file as a problem, in another `mode`, at other `sizes`, with other `baselines` and over a `baseline` where
    those are given. What cannot be loaded, and a second problem of one name, has its fault instead.
    """
    loaded: list[Loaded] = []
    taken: dict[str, Path] = {}
    for path in paths:
        try:
            problem = at_sizes(in_mode(load_problem(path, candidates_dir), mode), sizes)
            problem = over_baseline(with_baselines(problem, baselines, in_suite=len(paths) > 1), baseline)
        except HarnessError as error:
            loaded.append(Loaded(path, None, str(error)))
            continue
        if problem.name in taken:
            why = f"{shown(taken[problem.name])} has the same name, and their results would be mixed"
            loaded.append(Loaded(path, None, f"{shown(path)}: {why}. Run it by itself with another --out"))
        else:
            taken[problem.name] = path
            loaded.append(Loaded(path, problem))
    return loaded


def _meant_by(word: Path) -> list[Path]:
    if word.is_dir() and problem_in(word) is None:
        files = [each for each in sorted(word.iterdir()) if each.is_file() and each.name[0] not in "._"]
        yamls = [each for each in files if each.suffix in YAML_SUFFIXES]
        paths = yamls or [each for each in files if each.suffix == ".py"]
        if not paths:
            raise InputError("holds no problem file", word, hint="A problem is a .yaml file, or a KernelBench .py file")
        return paths
    if word.exists() or not glob.has_magic(str(word)):
        return [find_problem(word)]
    paths = [Path(each) for each in glob.glob(str(word), recursive=True)]
    paths = [problem_in(each) or each for each in paths]
    paths = [each for each in paths if each.suffix in (*YAML_SUFFIXES, ".py", ".json") and each.name[0] not in "._"]
    if any(each.name == TASK_FILE for each in paths):  # beside it lie only files of its own
        paths = [each for each in paths if each.suffix != ".py"]
    if not paths:
        folder = next((each for each in word.parents if not glob.has_magic(str(each))), Path("."))
        hint = f"Look into {shown(folder)}" if folder.is_dir() else f"There is no folder {shown(folder)}"
        raise InputError("no problem file matches this pattern", word, hint=hint)
    return paths


def _natural(text: str) -> list[tuple[bool, int, str]]:
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", text) if part]


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
    return Owned({name: tuple(by_stem.values()) for name, by_stem in files.items()}, tuple(nobodys))


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
