"""An exception of this software's own is no fault of the candidate's."""

from __future__ import annotations

import pytest
from fake_worker import Script

from harness.judge import device_run
from harness.model.verdict import OK, ReasonCode, Status, of_own_defect, traceback_of

def a_defect():
    raise AttributeError("'NoneType' object has no attribute 'times_us'")


def test_its_row_says_so_with_a_traceback_and_the_next_is_judged(fake_run):
    run = fake_run(scripts={"unlucky": Script(loads=a_defect)})
    run.device_run.run([run.candidate("unlucky"), run.candidate("other")])
    row, samples = run.rows["unlucky"], run.rows.samples[run.rows.names.index("unlucky")]
    assert (row.status, row.reason_code) == (Status.HARNESS_ERROR, ReasonCode.EXCEPTION)
    assert "test_own_defects.py" in row.reason and "'times_us'" in row.reason
    assert row.rank is None and row.speedup is None
    assert "a_defect" in samples["traceback"]
    assert run.rows["other"].status is Status.OK


@pytest.mark.parametrize("place", ["with_suspicions", "suspicions_of"])
def test_one_after_its_judging_costs_its_own_row_alone(fake_run, monkeypatch, place):
    monkeypatch.setattr(device_run, place, fails_once(getattr(device_run, place)))
    run = fake_run()
    run.device_run.run([run.candidate("unlucky"), run.candidate("other")])
    assert run.rows.names[-2:] == ["unlucky", "other"]
    row, samples = run.rows["unlucky"], run.rows.samples[run.rows.names.index("unlucky")]
    assert (row.status, row.rank) == (Status.HARNESS_ERROR, None)
    assert "in fail" in samples["traceback"]
    assert run.rows["other"].status is Status.OK


def fails_once(function):
    """`function`, but for its first call, which raises what this software's own mistakes raise."""
    calls = []

    def fail(*words):
        calls.append(words)
        if len(calls) == 1:
            raise TypeError("of the judge's own")
        return function(*words)

    return fail


def test_the_words_of_a_defect_name_its_place_and_fit_into_a_line():
    try:
        a_defect()
    except AttributeError as error:
        verdict, whole = of_own_defect(error), traceback_of(error)
    assert verdict.status is Status.HARNESS_ERROR and "AttributeError: 'NoneType'" in verdict.reason
    assert "at test_own_defects.py:" in verdict.reason and whole.startswith("Traceback")
    assert len(of_own_defect(ValueError("x\n" * 5000)).reason) < 600
    assert OK.status is not verdict.status
