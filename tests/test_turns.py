"""The suite in several processes: each on cores of its own, or, where there are too few, some tests alone."""

from __future__ import annotations

import json
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

# More files than are handed out at first, one of which ends its process.
MANY = """
import os, time
def test_ends_its_process():
    os._exit(3) if __name__.endswith("05") else time.sleep(0.01)
def test_after_it():
    time.sleep(0.01)
"""


CORES = """
import os, re
from pathlib import Path
import pytest
@pytest.mark.parametrize("number", range(3), ids="{0}@cpu-{{}}".format)
def test_cores_of_{0}(number):
    Path(os.environ["MARKS"], f"{0}-{{__name__}}-{{number}}").write_text(str(sorted(os.sched_getaffinity(0))))
"""


def ended(folder, sources, cores, status=0):
    """What a suite of these files said, run in two processes on these cores, and where its tests leave marks."""
    marks, tests = folder / "marks", folder / "tests"
    marks.mkdir()
    tests.mkdir()
    (tests / "conftest.py").write_text(Path(__file__).with_name("conftest.py").read_text(encoding="utf-8"))
    for name, source in sources.items():
        (tests / f"test_{name}.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = alone: by itself\naddopts = --import-mode=importlib\n")
    unlike_here = {name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", str(tests)],
        cwd=folder, env={**unlike_here, "MARKS": str(marks)}, capture_output=True, text=True, timeout=120, check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )
    assert done.returncode == status, done.stdout
    return done.stdout, marks


@pytest.mark.processes
def test_where_cores_are_too_few_a_test_that_is_alone_has_none_beside_it(tmp_path):
    one = {min(os.sched_getaffinity(0))}
    said, _ = ended(tmp_path, {"a": ALONE.replace("COUNT", "2"), "b": BESIDE.replace("COUNT", "12")}, one)
    assert "15 passed" in said


@pytest.mark.processes
def test_each_process_has_cores_of_its_own_and_what_belongs_together_stays_together(tmp_path):
    # In one process of several, which has cores of its own, those of the process that started it.
    cores = os.sched_getaffinity(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else 0)
    if len(cores) < 2:
        pytest.skip("there is one core here")
    sources = {"a": CORES.format("x") + CORES.format("y"), "b": CORES.format("x") + CORES.format("y")}
    said, marks = ended(tmp_path, sources, cores)
    assert "12 passed" in said
    found = {word: {path.read_text() for path in marks.glob(f"{word}-*")} for word in "xy"}
    assert [len(places) for places in found.values()] == [1, 1]
    own = [set(json.loads(text)) for places in found.values() for text in places]
    assert not own[0] & own[1] and own[0] | own[1] == cores


@pytest.mark.processes
def test_a_process_that_dies_ends_the_run_and_the_test_that_it_died_of_is_named(tmp_path):
    said, _ = ended(tmp_path, {f"file{number:02}": MANY for number in range(20)}, os.sched_getaffinity(0), status=1)
    assert "crashed while running 'tests/test_file05.py::test_ends_its_process'" in said
    assert "worker restarting disabled" in said


@pytest.mark.parametrize(("cores", "count", "shares"), [
    ([4, 5], 2, [{4}, {5}]), ([0, 1, 2, 3, 4], 2, [{0, 1}, {2, 3, 4}]), ([3], 2, [set(), set()]),
])
def test_cores_are_shared_out_evenly(cores, count, shares):
    conftest = runpy.run_path(str(Path(__file__).with_name("conftest.py")))
    assert [conftest["share_of"](cores, number, count) for number in range(count)] == shares


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
