"""The front door of an installation: the command `kernel-referee`, and the folder that what is shipped lies in.

`kernel_referee.evaluate` is `harness.evaluate`. A file `harness.py` of the user's may come before ours on the path;
what is imported through this name is ours all the same.
"""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def main() -> None:
    """Carry out the command line of this process."""
    _harness()
    importlib.import_module("harness.cli").as_process()


def _harness() -> ModuleType:
    """The package `harness` beside this one."""
    folder = str(Path(__file__).resolve().parent.parent)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("harness")
    finally:
        sys.path.remove(folder)


def __getattr__(name: str) -> Any:
    if name in ("evaluate", "Referee", "Evaluation"):
        return getattr(_harness(), name)
    raise AttributeError(f"module 'kernel_referee' has no attribute {name!r}")
