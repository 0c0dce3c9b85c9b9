"""Which addresses Python was asked for, as a process that has a candidate in it notes it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from harness.model.paths import REPOSITORY

pytestmark = pytest.mark.processes

PROGRAM = """
import ctypes, json, sys
from harness.worker import address_use as addresses
ctypes.CDLL(None).getpid  # asked for before the candidate came
addresses.heed()
{asks}
print(json.dumps(sorted(addresses.asked_for)))
"""


def asked(statements):
    command = [sys.executable, "-c", PROGRAM.format(asks=statements)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY, timeout=60)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("statements", "names"), [
    ("", []), ("import json.tool, decimal", []),
    ("ctypes.CDLL(None).sgemm_ if False else None", []),
    ("ctypes.CDLL(None).qsort", ["qsort"]),
    ("ctypes.CDLL('libm.so.6')['pow']", ["libm.so.6", "pow"]),
    ("ctypes.c_void_p.in_dll(ctypes.pythonapi, '_Py_TrueStruct')", ["_Py_TrueStruct"]),
])
def test_functions_and_libraries_are_noted_by_name_from_then_on(statements, names):
    assert asked(statements) == names


def test_a_second_interpreter_whose_hooks_are_its_own_is_noted():
    made = "import importlib\nname = '_xxsubinterpreters' if sys.version_info < (3, 13) else '_interpreters'\n"
    assert asked(f"{made}importlib.import_module(name).create()") == ["another interpreter's functions"]


def test_code_that_came_since_from_where_nothing_is_installed_is_listed_however_it_was_loaded(tmp_path):
    if shutil.which("g++") is None:
        pytest.skip("there is no C++ compiler")
    (tmp_path / "x.cpp").write_text("int x() { return 1; }")
    subprocess.run(["g++", "-shared", "-fPIC", "-o", tmp_path / "x.so", tmp_path / "x.cpp"], check=True, timeout=60)
    loads = "import _elementtree, importlib.machinery, importlib.util\n" \
        f"loader = importlib.machinery.ExtensionFileLoader('x', {str(tmp_path / 'x.so')!r})\n" \
        "try:\n    importlib.util.module_from_spec(importlib.util.spec_from_loader('x', loader))\nexcept ImportError: pass\n"
    took = asked(f"{loads}addresses.asked_for |= addresses.code_from_elsewhere()")
    assert took == [os.path.realpath(tmp_path / "x.so")]


def test_who_asks_for_very_many_hides_nothing_behind_them():
    many = "for n in range(300):\n    getattr(ctypes.CDLL(None), 'qsort', None); ctypes.CDLL(None)\n"
    assert asked(many) == ["qsort"]
    names = "for name in [each for each in dir(__import__('os'))] + ['x%d' % n for n in range(300)]:\n    getattr(ctypes.pythonapi, name, 0)\n"
    assert "more than are listed" in asked(names)
