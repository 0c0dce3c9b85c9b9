"""What a referee that stays keeps between candidates, and what it draws anew."""

from __future__ import annotations

from pathlib import Path

import pytest

import harness
from harness.errors import InputError
from harness.evaluation import Evaluation, Referee, _Kept
from harness.records.schema import Record
from harness.verdict import Status

pytestmark = pytest.mark.processes


def record(**fields) -> Record:
    return Record(
        run_id="1", utc="2026-05-01", problem="p", sizes="", dtype="float32", candidate="c", status=Status.OK, **fields
    )


@pytest.fixture
def referee(tmp_path):
    with Referee("cpu", out_dir=tmp_path / "results") as opened:
        yield opened


def test_the_package_offers_them_without_loading_anything_before():
    assert harness.Referee is Referee
    assert harness.Evaluation is Evaluation
    assert callable(harness.evaluate)
    with pytest.raises(AttributeError, match="evalute"):
        harness.evalute


def test_what_is_no_problem_no_setting_and_no_file_is_said_before_anything_is_built(referee):
    with pytest.raises(InputError, match="there is no problem 'tril'"):
        referee.evaluate("tril", "x")
    with pytest.raises(InputError, match="Did you mean 'quick'"):
        referee.evaluate("tril_matmul", "x", config="quik")
    with pytest.raises(InputError, match="no such candidate file"):
        referee.evaluate("tril_matmul", Path("/nowhere.py"))
    with pytest.raises(InputError, match="what no file can hold at 4: surrogates not allowed"):
        referee.evaluate("tril_matmul", "x = \ud800", config="quick")
    with pytest.raises(InputError, match="no name for a file"):
        referee.evaluate("tril_matmul", "x", name="../../up")


def test_a_device_that_is_none_is_refused():
    with pytest.raises(InputError, match="is no device"):
        Referee("toaster")


def test_an_answer_is_plain_json_whatever_was_measured():
    import json

    kept = _Kept(problem=None)
    error = {"max_u": float("inf"), "allowed_max_u": 1.0, "rms_u": 1.0, "allowed_rms_u": None}
    kept.append(record(), {"errors": [error]})
    body = Evaluation(kept.records[-1], kept.samples).to_json()
    assert json.loads(json.dumps(body, allow_nan=False))["errors"][0]["max_u"] is None
    assert body["metadata"]["correctness_trials"] == "(0 / 1)"
    assert Evaluation(kept.records[-1], kept.samples).correctness
