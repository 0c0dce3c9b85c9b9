"""Two judges on the CPU of this machine: one table, every candidate once, and a judge that dies costs none."""

from __future__ import annotations

import csv
import json
import os
import signal
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace

import pytest
from listening import Listening

from harness.build.cache import ENVIRONMENT_VARIABLE
from harness.judge.run import RunRequest
from harness.model.candidate import read_candidate
from harness.model.errors import InputError
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.model.settings import load_settings
from harness.runs.fleet import fleet
from harness.runs.fleet.judge_process import started

CORPUS = REPOSITORY / "tests" / "adversarial"
NAMES = ("returns_none", "raises_in_forward", "no_model_new", "wrong_shape", "raises_in_init")
EXPECTED = {
    "returns_none": "incorrect", "raises_in_forward": "incorrect", "no_model_new": "build_failed",
    "wrong_shape": "incorrect", "raises_in_init": "incorrect",
}

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


@pytest.fixture(scope="module")
def request_for(tmp_path_factory):
    """`request_for()`: candidates that end early, on a small problem, with a cache and results of their own."""
    folder = tmp_path_factory.mktemp("fleet")
    before = os.environ.get(ENVIRONMENT_VARIABLE)
    os.environ[ENVIRONMENT_VARIABLE] = str(folder / "cache")
    problem = load_problem(CORPUS / "tril_small.yaml", CORPUS)
    problem = replace(problem, check_sizes=({"M": 31},), cpu_sizes={"M": 64})
    candidates = [read_candidate(CORPUS / "form" / f"{name}.py") for name in NAMES]
    settings = load_settings(str(REPOSITORY / "configs" / "selftest.yaml"))
    yield lambda: RunRequest(problem, candidates, "cpu", settings, folder / "results")
    os.environ.pop(ENVIRONMENT_VARIABLE) if before is None else os.environ.update({ENVIRONMENT_VARIABLE: before})


@pytest.fixture(scope="module")
def judged(request_for):
    """One run by two judges: its result, and what was told of it."""
    told = Listening()
    [result] = fleet.run(request_for(), ["cpu", "cpu"], told)
    return result, told


def own(result):
    return [record for record in result.records if record.role == "candidate"]


def test_every_candidate_is_judged_once_with_the_verdict_that_one_device_gives(judged):
    result, _ = judged
    assert {record.candidate: record.status.value for record in own(result)} == EXPECTED
    assert len(own(result)) == len(NAMES)


def test_both_are_at_work_and_named(judged):
    _, told = judged
    # Five quick ones may all be judged before the second has timed its control.
    assert {name.partition(" ")[0] for name, _ in told.stages} == {"cpu#0", "cpu#1"}
    assert Counter(name for _, name in told.outcomes)["eager"] == len({device for device, _ in told.outcomes})


def test_all_rows_lie_in_one_csv_and_those_of_one_judge_are_one_run(judged):
    result, told = judged
    devices = {device for device, _ in told.outcomes}
    with result.csv_path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(NAMES) + len(devices)
    assert len({row["run_id"] for row in rows}) == len(devices)
    assert len({row["utc"] for row in rows}) == 1
    lines = [json.loads(line) for line in result.csv_path.with_suffix(".jsonl").read_text().splitlines()]
    assert len({(line["run_id"], line["candidate"]) for line in lines}) == len(rows)


def test_what_a_judge_that_is_killed_had_in_hand_is_judged_by_the_other(request_for, monkeypatch):
    """What becomes of the others that may die, and when, is `test_losing`'s."""
    killed, judges = [], []

    @contextmanager
    def watched(devices):
        with started(devices) as made:
            judges.extend(made)
            yield made

    def kill_once(name, text):
        if not killed and not name.endswith("eager"):
            killed.append(name)
            os.kill(judges[int(name[len("cpu#")])].pid, signal.SIGKILL)

    monkeypatch.setattr(fleet, "started", watched)
    told = Listening(kill_once)
    [result] = fleet.run(request_for(), ["cpu", "cpu"], told)
    victim = killed[0].partition(" ")[2]
    found = {record.candidate: record for record in own(result)}
    assert {name: row.status.value for name, row in found.items()} == EXPECTED
    assert "SIGKILL" in found[victim].warnings
    assert any("SIGKILL" in note for note in told.notes)


def test_what_every_judge_finds_wrong_with_the_input_is_the_users_error_once(request_for):
    asked = request_for()
    broken = replace(asked.problem, check_sizes=({"M": -1},))
    told = Listening()
    with pytest.raises(fleet.HarnessError):
        fleet.run(replace(asked, problem=broken), ["cpu", "cpu"], told)
    assert len(told.notes) == len(set(told.notes))


def test_architectures_are_for_machines_without_a_gpu(request_for):
    with pytest.raises(InputError, match="without a GPU"):
        fleet.run(replace(request_for(), archs=("80",)), ["cuda:0", "cuda:1"], Listening())
