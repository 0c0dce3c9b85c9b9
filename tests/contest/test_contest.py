"""A contest that goes on: its control, and the parameters that one candidate may have learnt of."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

from harness.baselines import BASELINES
from harness.build.product import Build
from harness.candidate import read_candidate
from harness.contest import Contest
from harness.records.assembling import RunFacts
from harness.referee.judgement import Judgement
from harness.report.progress import NullProgress
from harness.verdict import OK, Status


WORKSHOP = SimpleNamespace(is_settled=lambda candidate: candidate.name == "broken", is_quiet=True)


@pytest.fixture
def staying():
    """A contest that goes on, with what judging does replaced by a list of what was done."""
    contest = Contest.__new__(Contest)
    nothing = dict.fromkeys(field.name for field in fields(RunFacts))
    contest._facts, contest._lost, contest._control_at = RunFacts(**nothing), None, 0.0
    contest._own_row = None
    contest._facts_at, contest.canaries = time.monotonic(), iter((4100.0, 4200.0))
    contest._measure = lambda utc: RunFacts(**{**nothing, "utc": utc, "canary_gbps": next(contest.canaries)})
    contest._control_is_noisy, contest._ahead = False, SimpleNamespace(drop=lambda: None)
    contest._judge = SimpleNamespace(
        control=None, has_parameters=False, renew=None, forget_ready=lambda: None
    )
    contest.done = []

    def one(entry, following):
        contest.done.append(entry.name)
        if entry.name == "eager":
            contest._judge.control, contest._control_at = "control", time.monotonic()
            contest._judge.eagers, contest._judge.control_row_s = "eagers", 1.5

    contest._one = one
    contest._renew_control = lambda: contest.done.append("renewed")
    return contest


def test_a_contest_that_goes_on_judges_its_control_once_and_times_it_again_when_it_is_old(staying):
    candidate = SimpleNamespace(name="mine")
    staying.judge_alone(candidate, WORKSHOP, "2026-05-01T00:00:00Z")
    first = staying._facts.run_id
    staying.judge_alone(candidate, WORKSHOP, "2026-05-01T00:00:01Z")
    assert staying.done == ["eager", "mine", "mine"]
    assert staying._facts.run_id != first
    staying._control_at -= 61
    staying.judge_alone(candidate, WORKSHOP, "2026-05-01T00:01:02Z")
    assert staying.done[3:] == ["renewed", "mine"]


def test_canaries_that_stand_beside_a_time_are_of_its_minutes(staying):
    mine = SimpleNamespace(name="mine")
    staying.judge_alone(mine, WORKSHOP, "2026-05-01T00:00:00Z")
    assert staying._facts.canary_gbps is None, "those that the contest began with"
    staying._facts_at -= 61
    compiling = SimpleNamespace(is_settled=lambda candidate: False, is_quiet=False)
    staying.judge_alone(mine, compiling, "2026-05-01T00:01:01Z")
    staying.judge_alone(SimpleNamespace(name="broken"), WORKSHOP, "2026-05-01T00:01:02Z")
    assert staying._facts.canary_gbps is None, "compilers would take what is measured, and no time stands beside them"
    staying.judge_alone(mine, WORKSHOP, "2026-05-01T00:01:03Z")
    staying.judge_alone(mine, WORKSHOP, "2026-05-01T00:01:04Z")
    assert (staying._facts.canary_gbps, staying._facts.utc) == (4100.0, "2026-05-01T00:01:04Z")


def test_what_needs_no_launch_is_told_before_any_control_is_timed(staying):
    staying.judge_alone(SimpleNamespace(name="broken"), WORKSHOP, "2026-05-01T00:00:00Z")
    assert staying.done == ["broken"]


def test_a_control_that_was_timed_beside_compilers_is_timed_again_when_they_have_ended(staying):
    compiling = SimpleNamespace(is_settled=lambda candidate: False, is_quiet=False)
    candidate = SimpleNamespace(name="mine")
    staying.judge_alone(candidate, compiling, "2026-05-01T00:00:00Z")
    staying._control_is_noisy = True
    staying.judge_alone(candidate, compiling, "2026-05-01T00:00:01Z")
    assert staying.done == ["eager", "mine", "mine"]
    compiling.is_quiet = True
    staying.judge_alone(candidate, compiling, "2026-05-01T00:00:02Z")
    assert staying.done[3:] == ["renewed", "mine"]


def test_parameters_that_an_answer_told_of_are_drawn_anew_for_the_next_candidate(staying):
    candidate = SimpleNamespace(name="mine")
    staying.judge_alone(candidate, WORKSHOP, "2026-05-01T00:00:00Z")
    before, drawn = staying._judge, []
    staying._references = lambda: (["references"], drawn.append(1) or len(drawn))
    staying._judge_with = lambda references, seed: SimpleNamespace(
        control=None, eagers=None, control_row_s=0.0, has_parameters=True, renew=None, seed=seed,
        forget_ready=lambda: None,
    )
    staying.judge_alone(candidate, WORKSHOP, "2026-05-01T00:00:01Z")
    assert staying._judge is before
    before.has_parameters = True
    staying.judge_alone(candidate, WORKSHOP, "2026-05-01T00:00:02Z")
    staying.judge_alone(candidate, WORKSHOP, "2026-05-01T00:00:03Z")
    judge = staying._judge
    assert (judge.seed, judge.control, judge.eagers, judge.control_row_s) == (2, "control", "eagers", 1.5)


def test_a_control_whose_clock_is_in_doubt_is_not_timed_again_beside_compilers(staying):
    class Compiling:
        is_quiet = False

        def wait_until_quiet(self):
            staying.done.append("waited")
            self.is_quiet = True

    staying._workshop, staying._progress = Compiling(), NullProgress()
    staying._renew_when_quiet()
    staying._renew_when_quiet()
    assert staying.done == ["waited", "renewed", "renewed"]


@pytest.mark.parametrize(("has_room", "started"), [(True, [("b", True, True), ("d", False, False)]), (False, [])])
def test_as_a_player_goes_the_one_after_the_next_opens_the_device_and_another_is_started(has_room, started):
    contest, asked = Contest.__new__(Contest), []
    slow = replace(BASELINES["torch.compile"], name="slow")
    contest._to_come = [*(replace(BASELINES["eager"], name=name) for name in "bcd"), slow]
    contest._could_begin = lambda entry: entry.name != "c"  # which is still being built
    contest._bench, contest._workshop = SimpleNamespace(has_room_for_waiting=lambda: has_room), None

    def start(entry, workshop, *, open_device=False, for_later=False):
        asked.append((entry.name, open_device, for_later))

    contest._ahead = SimpleNamespace(start=start)
    contest._open_after_that()
    assert asked == started


@pytest.mark.parametrize(("saved", "verdict"), [("# the same idea\n", "ok/"), ("# another\n", "skipped/saved_meanwhile")])
def test_a_file_that_is_saved_again_while_it_is_judged_is_judged_in_neither_text(tmp_path, saved, verdict):
    path = tmp_path / "mine.py"
    path.write_text("# the same idea\nclass ModelNew: ...\n")
    contest, rows = Contest.__new__(Contest), []
    contest._to_come, contest._lost = [], None
    contest._workshop = SimpleNamespace(is_ready=lambda entry: True, build_of=lambda entry: Build(None))
    contest._record = lambda entry, verdict, build, judgement: rows.append((verdict, judgement))

    def play(entry, following, *, may_ask):
        path.write_text(f"{saved}class ModelNew: ...\n")
        return Judgement(OK)

    contest._play = play
    contest._one(read_candidate(path), None)
    [(found, judgement)] = rows
    assert f"{found.status.value}/{found.reason_code.value}" == verdict
    assert (judgement is None) == (found.status is Status.SKIPPED)
