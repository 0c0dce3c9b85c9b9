"""What a judge that stays keeps between candidates, and what it draws anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness.model.errors import InputError
from harness.model.paths import REPOSITORY
from harness.model.problem import load_problem
from harness.model.verdict import Status
from harness.results.record import Record
from harness.runs.referee import Evaluation, Referee, _LastRow

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


def test_a_folder_that_nothing_can_be_written_to_is_said_when_it_opens(tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match="cannot write the results to .*out: File exists.*--out DIR"):
        Referee("cpu", out_dir=tmp_path / "out")


def test_an_answer_is_plain_json_whatever_was_measured():
    import json

    row = _LastRow(problem=None)
    error = {"max_u": float("inf"), "allowed_max_u": 1.0, "rms_u": 1.0, "allowed_rms_u": None}
    row.append(record(), {"errors": [error]})
    body = Evaluation(row.record, row.samples).to_json()
    assert json.loads(json.dumps(body, allow_nan=False))["errors"][0]["max_u"] is None
    assert body["metadata"]["correctness_trials"] == "(0 / 1)"
    assert Evaluation(row.record, row.samples).correctness


CORPUS = REPOSITORY / "tests" / "adversarial"
RIGHT = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))
"""


@pytest.mark.slow
def test_a_verdict_alone_takes_no_time_of_anything_and_a_budget_ends_the_checks(referee):
    problem = replace(load_problem(CORPUS / "tril_small.yaml"), cpu_sizes={"M": 64}, check_sizes=({"M": 31},))
    right = referee.evaluate(problem, RIGHT, config="quick", check_only=True)
    assert (right.record.status, right.record.reason_code.value) == (Status.CHECKED, "not_timed")
    assert right.correctness and right.reward == 0.1 and right.record.time_us is None
    assert "players" not in right.samples or not right.samples["players"]
    wrong = referee.evaluate(problem, CORPUS / "form" / "wrong_shape.py", config="quick", check_only=True)
    assert (wrong.record.status, wrong.record.blame, wrong.reward) == (Status.INCORRECT, "candidate", 0.0)
    late = referee.evaluate(problem, RIGHT, config="quick", budget_s=0.0)
    assert late.record.reason_code.value == "row_timeout"
    # Neither a device run nor a control was made for want of a time.
    assert {each.role for each in referee._device_runs.popitem()[1].row.files.records} == {"baseline", "candidate"}
