"""Which winner of a search counts from then on: one whose whole interval lies above that of the defaults."""

from __future__ import annotations

import pytest

from harness.model.verdict import ReasonCode, Status
from harness.results.record import Record
from harness.runs.tuning import Trial, Tuned


def trial(lo, hi, value=1, **changes) -> Trial:
    plain = {
        "run_id": "r", "utc": "2026-05-01T12:30:05Z", "problem": "p", "sizes": "", "dtype": "float32", "candidate": "mine",
        "status": Status.OK, "speedup": (lo + hi) / 2, "speedup_lo": lo, "speedup_hi": hi,
    }
    return Trial({"BM": value}, Record(**(plain | changes)))


def tuned(best, default) -> Tuned:
    return Tuned([], [], best, default, None)


def test_a_winner_that_is_better_with_its_whole_interval_is_written():
    assert tuned(trial(1.5, 1.6, 2), trial(1.1, 1.4)).why_not_written is None


@pytest.mark.parametrize("lo", [0.2, 1.4])
def test_one_whose_interval_reaches_that_of_the_defaults_is_not(lo):
    assert "reaches that of the defaults" in tuned(trial(lo, 2.6, 2), trial(1.1, 1.4)).why_not_written


def test_defaults_that_could_not_be_timed_leave_everything_open():
    noisy = trial(0.1, 9.0, status=Status.UNSURE, reason_code=ReasonCode.NOISY, reason="noisy")
    assert "could not be timed" in tuned(trial(1.5, 1.6, 2), noisy).why_not_written
    assert "could not be timed" in tuned(trial(1.5, 1.6, 2), None).why_not_written


def test_anything_that_is_right_is_better_than_defaults_that_are_wrong():
    wrong = trial(9.0, 9.5, status=Status.INCORRECT, reason_code=ReasonCode.WRONG_VALUES, reason="wrong")
    assert tuned(trial(0.5, 0.6, 2), wrong).why_not_written is None


def test_the_defaults_themselves_need_no_file():
    default = trial(1.1, 1.4)
    assert tuned(default, default).why_not_written == "the defaults are the best"
