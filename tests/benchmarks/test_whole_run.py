"""The seconds of a whole command, run several times with a cache of its own."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from shipped import shipped

from harness.model.candidate import read_candidate

pytestmark = pytest.mark.processes

# A command that judges "a" and "b", notes whether its cache was there, and fails in the ways that it is told.
SCRIPT = r"""
import os, pathlib, sys, time
cache = pathlib.Path(os.environ["KERNEL_REFEREE_CACHE"])
seen = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
seen.mkdir(parents=True, exist_ok=True)
(seen / f"{time.time_ns()}.txt").write_text("cached" if cache.is_dir() else "cold")
cache.mkdir(parents=True, exist_ok=True)
names = ["a", "b"] if len(list(seen.glob("*.txt"))) < 3 or "--others" not in sys.argv else ["a", "c"]
if "--fail" in sys.argv:
    sys.exit("no such problem")
status = "build_failed" if "--broken" in sys.argv else "ok"
rows = ["eager,baseline,ok,", *(f"{name},candidate,{status},no such header" for name in names)]
for number in range(2 if "--twice" in sys.argv else 1):
    written = seen / "written" / f"{time.time_ns()}-{number}.csv"
    written.parent.mkdir(exist_ok=True)
    written.write_text("\n".join(["candidate,role,status,reason", *rows]) + "\n")
print("12:00:00.0 a: ok: 2.7 ms", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def whole_run(benchmark_named):
    return benchmark_named("whole_run")


@pytest.fixture
def command(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return sys.executable, str(script)


def test_each_run_is_timed_and_the_first_has_an_empty_cache(whole_run, command, tmp_path):
    found = list(whole_run.whole_runs(command, 3, tmp_path / "place"))
    assert [each.judged for each in found] == [2, 2, 2] and all(each.seconds > 0 for each in found)
    assert all(set(each.steps) == {"start", "end"} for each in found)
    runs = sorted((tmp_path / "place" / "results").glob("*.txt"), key=lambda path: int(path.stem))
    assert [run.read_text() for run in runs] == ["cold", "cached", "cached"]


def test_where_the_seconds_went_adds_up_to_the_run(whole_run):
    said = [
        (1.0, "12:00:00.0 opening the device"), (1.5, "12:00:00.5 eager: loading"), (1.75, "a word of a compiler's"),
        (2.0, "12:00:01.0 eager: checking"), (2.25, "12:00:01.2 eager: timing"), (3.0, "12:00:02.0 eager: ok: 2.7 ms"),
        (3.125, "12:00:02.1 a: loading"), (3.625, "12:00:02.6 a: checking"),
    ]
    steps = whole_run.steps_of(said, 5.0)
    assert steps == {
        "start": [1.0], "opening the device": [0.5], "loading": [0.5, 0.5], "checking": [0.25], "timing": [0.75],
        "next": [0.125], "end": [1.375],
    }
    assert whole_run.steps_of([], 2.0) == {"start": [2.0]}
    told = whole_run.told_by_step(whole_run.Whole(5.0, 2, steps))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in told.splitlines()]
    assert ["loading", "2", "1.00", "0.50"] in cells


def test_a_candidate_that_is_not_judged_to_the_end_is_no_fast_one(whole_run, command, tmp_path):
    with pytest.raises(SystemExit, match="a: build_failed: no such header"):
        list(whole_run.whole_runs([*command, "--broken"], 1, tmp_path))


def test_a_command_that_fails_ends_it_with_what_it_said(whole_run, command, tmp_path):
    with pytest.raises(SystemExit, match="no such problem"):
        list(whole_run.whole_runs([*command, "--fail"], 3, tmp_path))


def test_a_command_that_leaves_two_files_of_results_is_no_single_run(whole_run, command, tmp_path):
    with pytest.raises(SystemExit, match="left 2 files of results where one was expected"):
        list(whole_run.whole_runs([*command, "--twice"], 1, tmp_path))


def test_runs_that_judge_others_than_before_say_nothing_together(whole_run, command, tmp_path):
    with pytest.raises(SystemExit, match="judged a, c after a, b"):
        list(whole_run.whole_runs([*command, "--others"], 3, tmp_path))


def test_the_command_is_one_over_ten_candidates_in_cuda(whole_run):
    left_out = [word for before, word in zip(whole_run.QUICK_RUN, whole_run.QUICK_RUN[1:]) if before == "--skip"]
    found = [
        read_candidate(path) for path in shipped("candidates/tril_matmul/*.py")
        if not any(path.match(f"{each}.py") for each in left_out)
    ]
    assert [each.language for each in found] == ["cuda"] * 10


def test_an_import_of_pytorch_is_timed_in_a_process_of_its_own(whole_run, monkeypatch):
    took = iter([9.0, 2.0, 1.0, 4.0])  # the first has read it from the disk
    monkeypatch.setattr(
        whole_run.subprocess, "run", lambda command, **_: SimpleNamespace(stdout=f"{next(took)}\n")
    )
    assert whole_run.import_seconds() == 2.0
