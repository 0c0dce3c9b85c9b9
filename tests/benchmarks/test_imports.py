"""What benchmarks and the scripts of docs/ take from the harness and from each other is there, also where only a GPU would
reach it.
"""

from __future__ import annotations

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness.model.paths import REPOSITORY

SCRIPTS = sorted([*(REPOSITORY / "benchmarks").glob("*.py"), *(REPOSITORY / "docs").glob("*.py")])


def defined_in(path: Path) -> set[str]:
    """The names that a script has at its top level, without running it."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {each.asname or each.name for each in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            names |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return names


def is_there(module: str, name: str, beside: Path) -> bool:
    """Whether a script that lies in the folder `beside` finds `name` in `module`."""
    sibling = beside / f"{module}.py"
    if sibling.is_file():
        return name in defined_in(sibling)
    return hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_is_imported_from_the_harness_and_from_other_scripts_is_there(path):
    missing = [
        f"{node.module}.{each.name}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
        for each in node.names
        if ((node.module or "").startswith("harness") or (path.parent / f"{node.module}.py").is_file())
        and not is_there(node.module, each.name, path.parent)
    ]
    assert missing == []
