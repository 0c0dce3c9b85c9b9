"""Which addresses Python was asked for, as a process that has a candidate in it notes it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from harness.model.places import REPOSITORY

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


def test_who_asks_for_very_many_hides_nothing_behind_them():
    many = "for n in range(300):\n    getattr(ctypes.CDLL(None), 'qsort', None); ctypes.CDLL(None)\n"
    assert asked(many) == ["qsort"]
    names = "for name in [each for each in dir(__import__('os'))] + ['x%d' % n for n in range(300)]:\n    getattr(ctypes.pythonapi, name, 0)\n"
    assert "more than are listed" in asked(names)
