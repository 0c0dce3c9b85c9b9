"""Eager's mean over several processes is made before the first row that is over it, and what baselines leave is kept."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.contest import Contest
from harness.device.limits import CUDA
from harness.referee.eagers import Eagers
from harness.referee.judgement import Contestant, Judgement
from harness.referee.timed import Timing
from harness.settings import load_settings
from harness.verdict import ReasonCode, Status, Verdict

DOUBTED = Verdict(Status.UNSURE, ReasonCode.NOISY, "its clock is in doubt")


def timing_of(apart: float, overhead_us: float = 220.0) -> Timing:
    """Of a call of 16 µs whose process had eager so much slower than the referee's (log)."""
    return Timing(
        wants_inside=True, candidate_us=[16.0], baseline_us=[16.0], log_ratios=[0.0, 0.0], inside_log_ratios=[apart] * 2,
        wall_less_time_us=[overhead_us] * 3,
    )


@pytest.fixture
def contest():
    """`contest.play(name)` plays a baseline or candidate that is judged as `contest.coming` says; `contest.done` has what
    was done.
    """
    contest, done = Contest.__new__(Contest), []

    def contestant(name):
        made = Contestant(name, "", {}, (), None, "fp32", "torch", is_baseline=name in ("eager", "eager-tf32"))
        return made, SimpleNamespace(close=lambda: done.append(f"closed {name}"), start=None)

    def judge(judged, players, tell):
        done.append(judged.name)
        return contest.coming.pop(judged.name)

    def time_eager(judged, start):
        done.append("eager elsewhere")
        contest._judge.eagers.add([timing_of(0.02)])

    contest._workshop = SimpleNamespace(contestant=contestant, is_quiet=True)
    contest._workshop.contestant = lambda entry: contestant(getattr(entry, "name", entry))
    contest._ahead = SimpleNamespace(
        take=lambda entry: done.append(f"taken {entry}"), start=lambda *_, **__: None, wait_until_open=lambda: None,
        open_count=lambda: 0,
    )
    contest._bench = SimpleNamespace(
        has_room_for_waiting=lambda: True, unhealthy=lambda: None, left_bytes=lambda count: 0, limits=CUDA
    )
    contest._judge = SimpleNamespace(
        judge=judge, time_eager=time_eager, eagers=Eagers(3), control=None
    )
    contest._settings, contest._to_come = load_settings("default"), []
    contest._progress = SimpleNamespace(stage=lambda *_: None, note=lambda *_: None)
    contest.done, contest.coming = done, {
        "eager": Judgement(timings=[timing_of(0.01, 240.0)], launched=2),
        "eager-tf32": Judgement(timings=[timing_of(0.0, 222.0)]), "mine": Judgement(timings=[timing_of(0.0)]),
    }
    contest.play = lambda name: contest._play(name, None)
    return contest


def test_it_is_timed_elsewhere_after_the_control_and_before_a_player_of_a_row_is_taken(contest):
    for name in ("eager", "eager-tf32", "mine"):
        contest.play(name)
    assert [each for each in contest.done if not each.startswith("closed")] == [
        "taken eager", "eager", "eager elsewhere", "eager elsewhere", "taken eager-tf32", "eager-tf32", "taken mine", "mine",
    ]
    assert contest._judge.eagers.over_processes.processes == 4 and contest._judge.eagers.kernels == 2


def test_what_the_harness_s_steps_took_around_other_baselines_is_known_of_the_control(contest):
    contest.play("eager")
    contest.play("eager-tf32")
    contest.play("mine")
    assert contest._judge.control.overhead_us == 240.0 and contest._judge.control.others_us == (222.0,)


def test_a_baseline_in_doubt_says_nothing_of_the_harness(contest):
    contest.coming["eager-tf32"].verdict = DOUBTED
    contest.play("eager")
    contest.play("eager-tf32")
    assert contest._judge.control.others_us == ()


def test_where_it_cannot_be_timed_elsewhere_no_waiting_player_is_left_behind(contest):
    contest.play("eager")

    def fails(judged, start):
        raise OSError("no more processes")

    contest._judge.time_eager = fails
    with pytest.raises(OSError):
        contest.play("mine")
    assert "taken mine" not in contest.done
