"""An exception of this software's own is no fault of the candidate's."""

from __future__ import annotations

import pytest

import harness
from harness.referee.playing import Play
from harness.verdict import OK, ReasonCode, Status, of_own_defect, traceback_of

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.rand(64, 64)]
"""
CANDIDATE = REFERENCE.replace("class Model(", "class ModelNew(")


def a_defect():
    raise AttributeError("'NoneType' object has no attribute 'times_us'")


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "1_x.py"
    path.write_text(REFERENCE)
    return path


def test_its_row_says_so_with_a_traceback_and_the_next_is_judged(problem, monkeypatch):
    check = Play._check

    def check_but_one(self, session, contestant, *rest, **how):
        if contestant.name == "unlucky":
            a_defect()
        check(self, session, contestant, *rest, **how)

    monkeypatch.setattr(Play, "_check", check_but_one)
    with harness.Referee("cpu") as referee:
        unlucky = referee.evaluate(problem, CANDIDATE, name="unlucky", config="quick")
        other = referee.evaluate(problem, CANDIDATE, name="other", config="quick")
    assert (unlucky.record.status, unlucky.record.reason_code) == (Status.HARNESS_ERROR, ReasonCode.EXCEPTION)
    assert "test_own_defects.py" in unlucky.record.reason and "'times_us'" in unlucky.record.reason
    assert unlucky.record.rank is None and unlucky.record.speedup is None
    assert "a_defect" in unlucky.samples["traceback"]
    assert other.record.status in (Status.OK, Status.UNSURE)


def test_the_words_of_a_defect_name_its_place_and_fit_into_a_line():
    try:
        a_defect()
    except AttributeError as error:
        verdict, whole = of_own_defect(error), traceback_of(error)
    assert verdict.status is Status.HARNESS_ERROR and "AttributeError: 'NoneType'" in verdict.reason
    assert "at test_own_defects.py:" in verdict.reason and whole.startswith("Traceback")
    assert len(of_own_defect(ValueError("x\n" * 5000)).reason) < 600
    assert OK.status is not verdict.status
