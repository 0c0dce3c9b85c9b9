"""A sweep over problems: who is given what, what a death costs, and when it ends. The judges here only pretend."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.model.errors import HarnessError

pytestmark = pytest.mark.processes


@dataclass(frozen=True)
class Pretended:
    """A task whose key says what becomes of the process that has it."""

    key: str
    candidates: tuple[str, ...] = ("honest", "zeros")
    path: Path = Path("1_Problem.py")


def judge(pipe, device, setup):
    """In the place of a warm judge."""
    if device == "cuda:7":
        pipe.send(("failed", "there is no such GPU"))
        return
    pipe.send(("open", "a device", None))
    while (task := pipe.recv()) is not None:
        pipe.send(("stage", "honest", "loading"))
        for name in task.candidates:
            if task.key == "hangs" or (task.key == "dies" and name == "zeros"):
                time.sleep(30) if task.key == "hangs" else os._exit(9)
            pipe.send(("line", {
                "problem": task.key, "name": "1_Problem", "candidate": name, "status": "ok", "seconds": 0.1,
                "utc": "2026-01-01T00:00:00", "pid": os.getpid(),
            }))
        pipe.send(("done", task.key != "unsound"))
        if task.key == "unsound":
            return


@dataclass(frozen=True)
class Written(Pretended):
    """A task with a problem and one candidate; `refused` has none."""

    is_shrunk: bool = False

    def prepared(self, folder, is_cpu):
        if self.key == "refused":
            raise HarnessError("it cannot be made small")
        problem, candidate = folder / "1_Problem.py", folder / "honest.py"
        problem.write_text("class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n")
        candidate.write_text(f"class ModelNew: ...  # {self.key}\n")
        return problem, {"honest": candidate}


def test_candidates_are_built_ahead_in_order_but_for_what_is_refused_or_made_small_first(benchmark_named, monkeypatch):
    sweeping, asked = benchmark_named("sweeping"), []

    @contextmanager
    def building_ahead(wanted, device, settings):
        asked.extend((problem.path.exists(), [each.source for each in candidates]) for problem, candidates in wanted)
        asked.append((device, settings.name))
        yield

    monkeypatch.setattr(sweeping, "building_ahead", building_ahead)
    tasks = [Written("one"), Written("refused"), Written("small", is_shrunk=True), Written("two")]
    with sweeping.built_ahead(tasks, "cuda:1", benchmark_named("warm_referee").Setup()):
        pass
    sources = [[f"class ModelNew: ...  # {key}\n"] for key in ("one", "two")]
    assert asked == [*((True, source) for source in sources), ("cuda:1", "quick")]


@pytest.fixture
def sweep(benchmark_named, monkeypatch, tmp_path):
    sweeping, lines = benchmark_named("sweeping"), benchmark_named("judged_lines")
    fork = multiprocessing.get_context("fork")  # what is defined in a test cannot be imported by another process
    monkeypatch.setattr(sweeping.multiprocessing, "get_context", lambda method: fork)
    monkeypatch.setattr(sweeping, "judge_tasks", judge)
    path = tmp_path / "sweep.jsonl"

    def run(*tasks, devices=("cuda:0",), seconds=20.0, each_s=20.0):
        out = lines.LineFile(path)
        setup = benchmark_named("warm_referee").Setup()
        is_all = sweeping.Sweep(tasks, devices, setup, out, seconds=seconds, each_s=each_s, tell=lambda text: None).run()
        out.close()
        return is_all, {(each["problem"], each["candidate"]): each for each in lines.read_lines([path])}

    return run


def test_one_process_judges_problem_after_problem(sweep):
    is_all, found = sweep(Pretended("a"), Pretended("b"))
    assert is_all and len(found) == 4
    assert len({each["pid"] for each in found.values()}) == 1
    assert found["a", "honest"]["device"] == "cuda:0"


def test_a_death_costs_what_was_not_judged_of_its_problem(sweep):
    is_all, found = sweep(Pretended("a"), Pretended("dies"), Pretended("b"))
    assert is_all
    assert [found[key]["status"] for key in (("dies", "honest"), ("dies", "zeros"), ("b", "zeros"))] == ["ok", "died", "ok"]
    assert found["dies", "zeros"]["reason"] == (
        "the process that judged it ended with code 9, at the stage 'honest: loading'"
    )
    assert found["a", "honest"]["pid"] != found["b", "honest"]["pid"]


def test_a_problem_that_takes_too_long_is_given_up(sweep):
    is_all, found = sweep(Pretended("hangs"), Pretended("b"), each_s=0.5)
    assert is_all
    assert [found["hangs", each]["status"] for each in ("honest", "zeros")] == ["timed_out"] * 2
    assert found["b", "honest"]["status"] == "ok"


def test_the_end_of_the_time_leaves_what_is_under_way_without_a_line(sweep):
    began = time.monotonic()
    is_all, found = sweep(Pretended("a"), Pretended("hangs"), Pretended("b"), seconds=1.0)
    assert not is_all and {problem for problem, _ in found} == {"a"}
    assert time.monotonic() - began < 15


def test_a_process_that_is_of_no_more_use_is_replaced(sweep):
    is_all, found = sweep(Pretended("unsound"), Pretended("b"))
    assert is_all and found["unsound", "zeros"]["status"] == "ok"
    assert found["unsound", "honest"]["pid"] != found["b", "honest"]["pid"]


def test_devices_share_the_problems_and_one_that_cannot_be_opened_is_done_without(sweep):
    tasks = [Pretended(f"{number}") for number in range(6)]
    is_all, found = sweep(*tasks, devices=("cuda:0", "cuda:1", "cuda:7"))
    assert is_all and len(found) == 12


def test_without_any_device_the_sweep_ends_in_words(sweep):
    with pytest.raises(HarnessError, match="cuda:7: there is no such GPU"):
        sweep(Pretended("a"), devices=("cuda:7",))
