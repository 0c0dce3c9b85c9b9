"""What benchmarks and the scripts of docs/ take from the harness is there, also where only a GPU would reach it."""

from __future__ import annotations

import ast
import importlib
from importlib.util import find_spec

import pytest

from harness.model.paths import REPOSITORY

SCRIPTS = sorted([*(REPOSITORY / "benchmarks").glob("*.py"), *(REPOSITORY / "docs").glob("*.py")])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_what_is_imported_from_the_harness_is_there(path):
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("harness"):
            module = importlib.import_module(node.module)
            missing += [
                f"{node.module}.{each.name}" for each in node.names
                if not hasattr(module, each.name) and find_spec(f"{node.module}.{each.name}") is None
            ]
    assert missing == []
