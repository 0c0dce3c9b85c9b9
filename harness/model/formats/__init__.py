"""Problems and candidates of other projects, as they are: FlashInfer-Trace, SOL-ExecBench and GPU MODE's folders.

A reader turns each into the text of a KernelBench module or of a candidate, in which the foreign text is unchanged.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.text_files import files_in
from harness.model.formats.definition import read_definition
from harness.model.formats.foreign import Foreign
from harness.model.formats.task import TASK_FILE, read_task

DEFINITION_FILE = "definition.json"


def is_foreign(path: Path) -> bool:
    """Return whether the name of `path` says that it is a definition (.json) or a task (task.yml)."""
    return path.suffix == ".json" or path.name == TASK_FILE


def problem_in(folder: Path) -> Path | None:
    """Return the definition or task that `folder` holds; None where it holds neither."""
    return next((folder / name for name in (TASK_FILE, DEFINITION_FILE) if os.path.isfile(folder / name)), None)


def read_foreign(path: Path) -> Foreign:
    """Return the problem in `path`, a definition or a task. Raises InputError with what cannot be judged, and where."""
    if path.suffix == ".json" and not path.exists():
        beside = [each.name for each in files_in(path.parent, (".json",))]
        hint = f"There is {', '.join(beside[:5])}" if beside else "Name a definition.json, or the folder that has one"
        raise InputError("no such file", path, hint=hint)
    return read_definition(path) if path.suffix == ".json" else read_task(path)
