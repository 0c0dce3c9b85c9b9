"""The suite in several processes: which tests run beside others, and which have the machine to themselves."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("xdist")

# A test beside others takes part of a second in each of two files; the one that is alone finds none of them at work.
BESIDE = """
import os, time
from pathlib import Path
from types import SimpleNamespace
import pytest
@pytest.mark.parametrize("number", range(COUNT))
def test_beside(number):
    mark = Path(os.environ["MARKS"], f"{__name__}-{number}")
    mark.touch()
    time.sleep(0.15)
    mark.unlink()
"""
ALONE = BESIDE + """
@pytest.mark.alone
def test_alone():
    for _ in range(10):
        assert list(Path(os.environ["MARKS"]).iterdir()) == []
        time.sleep(0.02)
"""


def test_a_test_that_is_alone_has_none_beside_it(tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    (tests / "test_a.py").write_text(ALONE.replace("COUNT", "2"))
    (tests / "test_b.py").write_text(BESIDE.replace("COUNT", "12"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone: by itself\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", str(tests)],
        cwd=tmp_path, env={**os.environ, "MARKS": str(marks)}, capture_output=True, text=True, timeout=120, check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "15 passed" in done.stdout


def test_a_process_of_several_starts_none_of_its_own(monkeypatch):
    conftest = runpy.run_path(str(Path(__file__).with_name("conftest.py")))
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    whole = {"args_source": pytest.Config.ArgsSource.TESTPATHS}

    def asked(**more):
        option = SimpleNamespace(numprocesses=None, keyword="", usepdb=False)
        config = SimpleNamespace(option=option, **whole, **more)
        conftest["pytest_cmdline_main"](config)
        return option.numprocesses

    monkeypatch.setitem(conftest["pytest_cmdline_main"].__globals__, "GPU", Path("/no/such/device"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert asked() == 2
    assert asked(workerinput={}) is None
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert asked() is None
