"""A baseline of the user's own in a contest: judged after eager and before all else, whatever becomes of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import contest as contest_module
from harness.baselines import BASELINES
from harness.candidate import Candidate, OwnBaseline
from harness.contest import Contest
from harness.records.schema import Record
from harness.report.progress import NullProgress
from harness.verdict import OK

EXPERT = OwnBaseline("expert", Path("expert.py"), "", "e" * 16, "torch")
MINE = Candidate("mine", Path("mine.py"), "", "c" * 16, "torch")
SPEEDUPS = {"eager": 1.0, "expert": 2.0, "mine": 3.0}


@pytest.fixture
def contest(monkeypatch):
    """A contest over the expert's file, with known speedups over eager in the place of all playing."""
    def record_of(facts, *, name, role, source_hash, verdict, **rest):
        speedup = SPEEDUPS[name]
        return Record(
            run_id="r", utc="2026-05-01T12:30:05Z", problem="p", sizes="", dtype="float32", candidate=name, role=role,
            source_hash=source_hash, status=verdict.status, time_us=1000.0 / speedup, baseline="eager",
            baseline_us=1000.0, speedup=speedup, speedup_lo=speedup, speedup_hi=speedup,
        )

    monkeypatch.setattr(contest_module, "record_of", record_of)
    monkeypatch.setattr(contest_module, "samples_of", lambda judgement, build: {})
    found = Contest.__new__(Contest)
    found._problem = SimpleNamespace(baseline=EXPERT)
    found._facts, found._judge, found._progress = None, SimpleNamespace(problem_notes=(), control=None), NullProgress()
    found._own_row, found._held_back, found.asked, found.written = None, [], [], []
    found._files = SimpleNamespace(append=lambda record, samples: found.written.append(record))

    def judge_entry(entry, following):
        found.asked.append((entry.name, following and following.name))
        found._record(entry, OK, None, None)

    found._judge_entry = judge_entry
    return found


def test_the_file_is_judged_after_eager_and_before_what_follows(contest):
    contest._one(BASELINES["eager"], MINE)
    contest._one(MINE, None)
    assert contest.asked == [("eager", "expert"), ("expert", "mine"), ("mine", None)]


def test_every_row_is_over_the_file_eager_s_own_among_them(contest):
    contest._one(BASELINES["eager"], MINE)
    contest._one(MINE, None)
    rows = {each.candidate: each for each in contest.written}
    assert [*rows] == ["eager", "expert", "mine"]
    assert {each.baseline for each in rows.values()} == {"expert"}
    assert (rows["eager"].speedup, rows["expert"].speedup, rows["mine"].speedup) == (
        pytest.approx(0.5), None, pytest.approx(1.5)
    )
    assert {name: each.eager_speedup for name, each in rows.items()} == SPEEDUPS
    assert rows["expert"].role == "baseline" and rows["mine"].role == "candidate"


def test_eager_s_row_is_written_all_the_same_when_the_file_s_turn_is_interrupted(contest):
    def interrupted(entry, following):
        if entry is EXPERT:
            raise KeyboardInterrupt
        contest._record(entry, OK, None, None)

    contest._judge_entry = interrupted
    with pytest.raises(KeyboardInterrupt):
        contest._one(BASELINES["eager"], MINE)
    [row] = contest.written
    assert (row.candidate, row.baseline, row.speedup, row.eager_speedup) == ("eager", "expert", None, 1.0)


def test_over_eager_nothing_is_held_back(contest):
    contest._problem = SimpleNamespace(baseline=None)
    contest._one(BASELINES["eager"], MINE)
    assert contest.asked == [("eager", "mine")]
    [row] = contest.written
    assert (row.baseline, row.speedup, row.eager_speedup) == ("eager", 1.0, None)
