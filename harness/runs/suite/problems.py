"""The problem files that a person means by files, folders and globs, loaded one by one: a bad one costs its line."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import HarnessError, InputError
from harness.model.files.text_files import shown
from harness.model.files.yaml_lines import YAML_SUFFIXES
from harness.model.formats import TASK_FILE, problem_in
from harness.model.problem import Problem, at_sizes, find_problem, in_mode, load_problem, over_baseline, with_baselines


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
    """The problem files in the order of their names, numbers as numbers (2_x before 10_x), each once.

    A folder stands for the YAML files in it, or where there are none for its .py files. Raises InputError for a word
    that means nothing.
    """
    found: dict[Path, Path] = {}
    for word in words:
        for path in _meant_by(word):
            found.setdefault(path.resolve(), path)
    return sorted(found.values(), key=lambda path: (_natural(str(path.parent)), _natural(path.name)))


def load_all(
    paths: Sequence[Path], candidates_dir: Path | None, mode: str | None = None, sizes: Sequence[str] = (),
    baselines: str | None = None, baseline: Path | None = None,
) -> list[Loaded]:
    """Every file as a problem, in another `mode`, at other `sizes`, with other `baselines` and over a `baseline` where
    those are given.

    What cannot be loaded, and a second problem of one name, has its fault instead.
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
            fault = f"{shown(path)}: {shown(taken[problem.name])} has the same name, and their results would be " \
                    "mixed. Run it by itself with another --out"
            loaded.append(Loaded(path, None, fault))
        else:
            taken[problem.name] = path
            loaded.append(Loaded(path, problem))
    return loaded


def _meant_by(word: Path) -> list[Path]:
    if word.is_dir() and problem_in(word) is None:
        files = [each for each in sorted(word.iterdir()) if each.is_file() and each.name[0] not in "._"]
        yamls = [each for each in files if each.suffix in YAML_SUFFIXES]
        found = yamls or [each for each in files if each.suffix == ".py"]
        if not found:
            raise InputError("holds no problem file", word, hint="A problem is a .yaml file, or a KernelBench .py file")
        return found
    if word.exists() or not glob.has_magic(str(word)):
        return [find_problem(word)]
    found = [Path(each) for each in glob.glob(str(word), recursive=True)]
    found = [problem_in(each) or each for each in found]
    found = [each for each in found if each.suffix in (*YAML_SUFFIXES, ".py", ".json") and each.name[0] not in "._"]
    if any(each.name == TASK_FILE for each in found):  # beside it lie only files of its own
        found = [each for each in found if each.suffix != ".py"]
    if not found:
        folder = next((each for each in word.parents if not glob.has_magic(str(each))), Path("."))
        hint = f"Look into {shown(folder)}" if folder.is_dir() else f"There is no folder {shown(folder)}"
        raise InputError("no problem file matches this pattern", word, hint=hint)
    return found


def _natural(text: str) -> list[tuple[bool, int, str]]:
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"(\d+)", text) if part]
