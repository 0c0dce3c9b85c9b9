"""What KernelBench's fields say of each status."""

from __future__ import annotations

import pytest

from harness.model.verdict import CODES_OF, ReasonCode, Status
from harness.results.record import Record
from harness.results.scores import result_fields

SAMPLES = {
    "players": [{"candidate_us": [1000.0, 3000.0]}],
    "errors": [
        {"max_u": 3.0, "allowed_max_u": 8.0, "rms_u": 1.0, "allowed_rms_u": None},
        {"max_u": None, "allowed_max_u": 8.0, "rms_u": None, "allowed_rms_u": 2.0},
    ],
}


def fields(status, code=None, samples=SAMPLES):
    code = code or sorted(CODES_OF[status], key=lambda each: each.value)[0]
    record = Record(
        run_id="1", utc="2026-05-01", problem="p", sizes="", dtype="float32", candidate="c", status=status,
        reason_code=code, reason=None if status is Status.OK else "why", device_name="H200", device_kind="cuda",
    )
    return result_fields(record, samples)


def test_a_right_candidate_has_its_times_in_milliseconds():
    found = fields(Status.OK)
    assert (found["compiled"], found["correctness"], found["runtime"]) == (True, True, 2.0)
    stats = found["runtime_stats"]
    assert (stats["min"], stats["max"], stats["std"], stats["num_trials"]) == (1.0, 3.0, 1.0, 2)
    assert found["metadata"]["hardware"] == "H200"


def test_what_cannot_be_timed_here_is_right_without_a_time():
    found = fields(Status.UNSURE, samples={})
    assert (found["correctness"], found["runtime"], found["runtime_stats"]) == (True, -1.0, {})


@pytest.mark.parametrize(("status", "code", "compiled", "named"), [
    (Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, False, "compilation_error"),
    (Status.TIMED_OUT, ReasonCode.BUILD_TIMEOUT, False, "compilation_error"),
    (Status.TIMED_OUT, ReasonCode.LAUNCH_TIMEOUT, True, "runtime_error"),
    (Status.INCORRECT, ReasonCode.WRONG_VALUES, True, "correctness_issue"),
    (Status.INCORRECT, ReasonCode.RAISED, True, "runtime_error"),
    (Status.IMPRECISE, ReasonCode.REDUCED_PRECISION, True, "correctness_issue"),
    (Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, True, "runtime_error"),
    (Status.CRASHED, ReasonCode.SIGNAL, True, "runtime_error"),
    (Status.SKIPPED, ReasonCode.NO_NVCC, False, "runtime_error"),
    (Status.SKIPPED, ReasonCode.NEEDS_CPU, True, "runtime_error"),
])
def test_what_failed_is_never_correct_nor_timed_and_says_why(status, code, compiled, named):
    found = fields(status, code)
    assert (found["compiled"], found["correctness"], found["runtime"]) == (compiled, False, -1.0)
    assert found["metadata"][named] == "why"
    assert found["metadata"][f"{named}_name"] == code.value
    assert found["metadata"]["correctness_trials"] == "(1 / 2)"


def test_what_was_only_checked_by_an_interpreter_is_no_error_and_not_called_correct():
    found = fields(Status.CHECKED, samples={"errors": SAMPLES["errors"][:1]})
    assert (found["compiled"], found["correctness"], found["runtime"]) == (True, False, -1.0)
    assert found["metadata"] == {
        "hardware": "H200", "device": "cuda", "correctness_trials": "(1 / 1)", "checked": "why",
    }


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_its_fields(status):
    assert set(fields(status)) == {"compiled", "correctness", "runtime", "runtime_stats", "metadata"}
