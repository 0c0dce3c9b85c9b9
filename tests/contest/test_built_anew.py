"""A candidate that asks for extensions as it runs: how often it is begun anew, and what is said where they do not build."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.build.missing_extension import WENT_ON
from harness.candidate import read_candidate
from harness.contest import Contest
from harness.referee.judgement import Judgement
from harness.verdict import OK, ReasonCode, Status, Verdict

CALL = {"kind": "load_inline", "arguments": {"name": "late"}, "texts": {}}
CHANGED = Verdict(Status.REJECTED, ReasonCode.BUILD_CHANGED, "load_inline(name='late') could not be built")
REFUSED = Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, "mine.py:7: expected ';'")


def asking():
    return Judgement(CHANGED, unbuilt=[CALL])


@pytest.fixture
def contest_of(tmp_path):
    """`contest_of(judgements, builds)`: one whose plays and builds end so, in this order."""

    def make(judgements, builds=()):
        contest = Contest.__new__(Contest)
        contest.plays, coming, built = [], iter(judgements), iter(builds)
        contest._workshop = SimpleNamespace(build_asked=lambda entry, calls: next(built))
        contest._progress = SimpleNamespace(stage=lambda *_: None)

        def play(entry, following, *, may_ask):
            contest.plays.append(may_ask)
            return next(coming)

        contest._play = play
        (tmp_path / "mine.py").write_text("class ModelNew: ...\n")
        contest.entry = read_candidate(tmp_path / "mine.py")
        return contest

    return make


def test_one_that_asks_for_nothing_is_played_once(contest_of):
    contest = contest_of([Judgement(OK)])
    assert contest._play_as_built(contest.entry, None).verdict == OK and contest.plays == [True]


def test_once_what_it_asked_for_is_built_it_is_begun_anew(contest_of):
    contest = contest_of([asking(), Judgement(OK)], [None])
    assert contest._play_as_built(contest.entry, None).verdict == OK and contest.plays == [True, True]


def test_one_that_asks_for_others_each_time_is_rejected_in_the_end(contest_of):
    contest = contest_of([asking(), asking(), asking(), Judgement(CHANGED)], [None] * 3)
    assert contest._play_as_built(contest.entry, None).verdict == CHANGED
    assert contest.plays == [True, True, True, False]


@pytest.mark.parametrize(("ends", "verdict"), [(CHANGED, REFUSED), (OK, OK)])
def test_where_it_does_not_build_the_candidate_may_go_on_without_it(contest_of, ends, verdict):
    contest = contest_of([asking(), Judgement(ends)], [REFUSED])
    judgement = contest._play_as_built(contest.entry, None)
    assert judgement.verdict == verdict and (WENT_ON in judgement.warnings) == (verdict == OK)


def test_where_it_was_only_compiled_or_took_too_long_that_is_the_verdict(contest_of):
    compiled = Verdict(Status.COMPILED, ReasonCode.NO_GPU, "for sm_90a")
    contest = contest_of([asking()], [compiled])
    assert contest._play_as_built(contest.entry, None).verdict == compiled and len(contest.plays) == 1


def test_a_baseline_may_ask_for_nothing(contest_of):
    contest = contest_of([Judgement(OK)])
    contest._play_as_built(object(), None)
    assert contest.plays == [False]
