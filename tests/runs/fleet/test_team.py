"""Which devices are one team, and what is told of versions in which they differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_fleet import FakeBuilds
from fake_worker import PRODUCT, SETTINGS, problem_in

from harness.device.identity import DeviceIdentity
from harness.judge.run import RunRequest
from harness.model.candidate import read_candidate
from harness.runs.fleet.team import Team, unlike

FIRST = DeviceIdentity("cuda", "H", uuid="a", driver="580.1", torch="2.13.0", cuda="13.0")


@pytest.mark.parametrize(("changes", "difference", "is_one_team"), [
    ({}, None, True),
    ({"name": "I", "torch": "2.12.0"}, None, False),
    ({"driver": "570.2"}, "driver 570.2 where another H has 580.1", True),
    ({"torch": "2.12.0"}, "torch 2.12.0 where another H has 2.13.0", False),
    ({"torch": "2.12.0", "cuda": "12.9"}, "torch 2.12.0 where another H has 2.13.0; cuda 12.9 where another H has 13.0", False),
])
def test_another_driver_is_told_and_another_pytorch_is_another_team(changes, difference, is_one_team):
    device = replace(FIRST, uuid="b", **changes)
    assert unlike(device, [FIRST]) == difference
    assert (device.team == FIRST.team) == is_one_team


@pytest.fixture
def builds():
    return FakeBuilds()


@pytest.fixture
def team_in(tmp_path, builds):
    """A team with eager, torch.compile and the candidates "mine" and "other"; nothing is built."""
    problem = replace(problem_in(tmp_path), baselines=("eager", "torch.compile"))
    for name in ("mine", "other"):
        (tmp_path / f"{name}.py").write_text(f"{PRODUCT}\nModelNew = Model\n")
    candidates = [read_candidate(tmp_path / f"{name}.py") for name in ("mine", "other")]
    request = RunRequest(problem, candidates, "auto", SETTINGS, tmp_path / "results")
    with Team(request, FIRST, "2026-11-27T00:00:00+00:00", builds) as team:
        yield team


def entry_of(delivery):
    entry = delivery.entries[delivery.job.entry]
    return entry if isinstance(entry, str) else entry.name


def test_what_takes_seconds_to_start_is_told_to_the_first_judge_at_once_and_judged_there_last(team_in):
    for number in (0, 1):
        team_in.join(number, FIRST)
    first, second = team_in.next(0), team_in.next(1)
    assert (entry_of(first), entry_of(second)) == ("eager", "eager")
    assert "torch.compile" in first.entries.values()
    assert "torch.compile" not in second.entries.values()
    rest = [team_in.next(number) for number in (1, 0)]
    assert [entry_of(each) for each in rest] == ["other", "mine"]
    assert rest[1].entries[rest[1].job.following] == "torch.compile"
    assert team_in.next(1) is None
    assert entry_of(team_in.next(0)) == "torch.compile"


def test_what_takes_seconds_to_start_is_not_begun_while_something_is_built_that_it_would_keep_waiting(team_in, builds):
    builds.is_idle = False
    team_in.join(0, FIRST)
    assert [entry_of(team_in.next(0)) for _ in range(3)] == ["eager", "mine", "other"]
    assert team_in.next(0) is None
    builds.is_idle = True
    assert entry_of(team_in.next(0)) == "torch.compile"


def test_what_was_started_by_a_judge_that_is_lost_is_judged_by_another(team_in):
    for number in (0, 1):
        team_in.join(number, FIRST)
        team_in.next(number)
    team_in.lose(0, "gone")
    assert [entry_of(team_in.next(1)) for _ in range(3)] == ["other", "torch.compile", "mine"]
