"""What a source gives away stands beside a finding, and beside a good row only where it touches the judge."""

from __future__ import annotations

import time
from dataclasses import fields
from types import SimpleNamespace

import pytest

from harness.baselines import BASELINES
from harness.contest import Contest, _with_suspicions
from harness.provenance.kinds import Provenance
from harness.records.assembling import RunFacts
from harness.referee.judgement import Judgement
from harness.verdict import OK, ReasonCode, Status, Verdict

PATCHES = "import time\ntime.perf_counter = print\n"
LOOKS = "import gc\nfound = gc.get_objects()\n"


def test_a_rejected_candidate_is_told_where_to_look():
    verdict = Verdict(Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, "the clocks disagree")
    told = _with_suspicions(verdict, PATCHES, Judgement())
    assert told.reason == "the clocks disagree; its line 2 replaces time.perf_counter"
    assert told.reason_code is ReasonCode.CLOCKS_DISAGREE


def test_a_good_row_is_noted_only_for_what_it_replaces():
    judgement = Judgement()
    assert _with_suspicions(OK, LOOKS, judgement) is OK
    assert judgement.warnings == []
    assert _with_suspicions(OK, PATCHES, judgement) is OK
    assert judgement.warnings == ["its line 2 replaces time.perf_counter: look at it"]


@pytest.mark.parametrize(("source", "kind", "taken"), [
    (LOOKS, "custom", "unknown"), (PATCHES, "mixed", "unknown"), (LOOKS, "library", "library"),
    ("import torch\n", "custom", "custom"), ("import torch\ntorch._inductor.config.max_autotune = True\n", "custom", "custom"),
])
def test_whose_kernels_ran_is_not_believed_of_a_source_that_reaches_into_what_reports_it(source, kind, taken):
    judgement = Judgement(provenance=Provenance(kind, 1.0))
    assert _with_suspicions(OK, source, judgement) is OK
    assert judgement.provenance.kind == taken
    assert any("has no rank" in each for each in judgement.warnings) == (taken != kind)


def test_an_ordinary_source_changes_no_verdict():
    verdict = Verdict(Status.INCORRECT, ReasonCode.WRONG_VALUES, "element [0, 0] is 1 where 2 is expected")
    assert _with_suspicions(verdict, "import torch\n", Judgement()) is verdict
    crashed = Verdict(Status.CRASHED, ReasonCode.SIGNAL, "killed by SIGSEGV")
    assert _with_suspicions(crashed, PATCHES, Judgement()) is crashed


@pytest.fixture
def staying():
    """A contest that goes on, with what judging does replaced by a list of what was done."""
    contest = Contest.__new__(Contest)
    nothing = dict.fromkeys(field.name for field in fields(RunFacts))
    contest._facts, contest._lost, contest._control_at = RunFacts(**nothing), None, 0.0
    contest._judge = SimpleNamespace(control=None, has_parameters=False, renew=None)
    contest.done = []

    def one(entry, following):
        contest.done.append(entry.name)
        if entry.name == "eager":
            contest._judge.control, contest._control_at = "control", time.monotonic()

    contest._one = one
    contest._renew_control = lambda entry: contest.done.append("renewed")
    return contest


def test_a_contest_that_goes_on_judges_its_control_once_and_times_it_again_when_it_is_old(staying):
    candidate = SimpleNamespace(name="mine")
    staying.judge_alone(candidate, "workshop", "2026-05-01T00:00:00Z")
    first = staying._facts.run_id
    staying.judge_alone(candidate, "workshop", "2026-05-01T00:00:01Z")
    assert staying.done == ["eager", "mine", "mine"]
    assert staying._facts.run_id != first
    staying._control_at -= 61
    staying.judge_alone(candidate, "workshop", "2026-05-01T00:01:02Z")
    assert staying.done[3:] == ["renewed", "mine"]


def test_parameters_that_an_answer_told_of_are_drawn_anew_for_the_next_candidate(staying):
    candidate = SimpleNamespace(name="mine")
    staying.judge_alone(candidate, "workshop", "2026-05-01T00:00:00Z")
    before, drawn = staying._judge, []
    staying._references = lambda: (["references"], drawn.append(1) or len(drawn))
    staying._judge_with = lambda references, seed: SimpleNamespace(
        control=None, has_parameters=True, renew=None, seed=seed
    )
    staying.judge_alone(candidate, "workshop", "2026-05-01T00:00:01Z")
    assert staying._judge is before
    before.has_parameters = True
    staying.judge_alone(candidate, "workshop", "2026-05-01T00:00:02Z")
    staying.judge_alone(candidate, "workshop", "2026-05-01T00:00:03Z")
    assert (staying._judge.seed, staying._judge.control) == (2, "control")


class Starter:
    """Stands for what starts a contestant's players."""

    def __init__(self, entry) -> None:
        self.entry, self.started, self.closed = entry, 0, False

    def start_ahead(self) -> None:
        self.started += 1

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def waiting():
    """A contest on a GPU of which only the players that are started ahead are real: `starters` in order."""
    contest = Contest.__new__(Contest)
    contest._bench, contest._ahead, contest.starters = SimpleNamespace(kind="cuda"), [], []

    def contestant(entry):
        contest.starters.append(Starter(entry))
        return entry, contest.starters[-1]

    contest._workshop = SimpleNamespace(is_ready=lambda entry: True, contestant=contestant)
    return contest


def test_a_player_that_waits_is_the_one_that_its_entry_gets_and_is_started_once(waiting):
    eager = BASELINES["eager"]
    waiting._start_ahead(eager)
    waiting._start_ahead(eager)
    (starter,) = waiting.starters
    assert starter.started == 1
    assert waiting._take_ahead(eager) is starter
    assert not starter.closed
    assert waiting._take_ahead(eager) is None


def test_a_player_whose_turn_did_not_come_is_ended_unless_it_is_slow_to_start(waiting):
    for name in ("torch.compile", "eager-tf32"):
        waiting._start_ahead(BASELINES[name])
    compiled, tf32 = waiting.starters
    assert waiting._take_ahead(BASELINES["eager"]) is None
    assert (compiled.closed, tf32.closed) == (False, True)
    assert waiting._take_ahead(BASELINES["torch.compile"]) is compiled
    waiting._start_ahead(BASELINES["torch.compile"])
    waiting._drop_ahead()
    assert waiting.starters[-1].closed
    assert waiting._ahead == []
