"""From words of the far side to verdicts; none of them can lead to a rank."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.launch.failures import Unbuilt, from_exception, from_fault, protocol, unbuilt
from harness.model.verdict import ReasonCode, Status

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8,
)
WORDS = st.fixed_dictionaries({}, optional={
    key: JSON for key in ("type", "message", "where", "out_of_memory", "code", "detail", "frames")
})


def test_an_ordinary_exception_makes_the_candidate_incorrect_and_names_its_line():
    words = {"type": "ValueError", "message": "no tile of 0", "where": "/home/u/candidates/tiled.py:12"}
    verdict = from_exception(words, "in forward").verdict
    assert (verdict.status, verdict.reason_code) == (Status.INCORRECT, ReasonCode.RAISED)
    assert verdict.reason == "raised ValueError: no tile of 0 in forward at tiled.py:12"


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        ({"type": "OutOfMemoryError", "message": "CUDA out of memory", "out_of_memory": True},
         Status.OUT_OF_MEMORY, ReasonCode.DEVICE_MEMORY),
        ({"type": "MemoryError", "message": "", "out_of_memory": True}, Status.OUT_OF_MEMORY, ReasonCode.HOST_MEMORY),
        ({"type": "RuntimeError", "message": "CUDA error: an illegal memory access was encountered"},
         Status.CRASHED, ReasonCode.CUDA_ERROR),
        ({"type": "AcceleratorError", "message": "anything"}, Status.CRASHED, ReasonCode.CUDA_ERROR),
        # PyTorch built for CUDA, on a machine without a GPU: there nothing of CUDA can crash.
        ({"type": "RuntimeError", "message": "CUDA error: CUDA driver version is insufficient for CUDA runtime version"},
         Status.INCORRECT, ReasonCode.RAISED),
        ({"type": "NotBuilt", "message": "load_inline(name='x') was not called"}, Status.REJECTED,
         ReasonCode.BUILD_CHANGED),
        ({"type": "RuntimeError", "message": "shape mismatch"}, Status.INCORRECT, ReasonCode.RAISED),
    ],
    ids=lambda value: value.get("type") if isinstance(value, dict) else None,
)
def test_kinds_of_exceptions_are_told_apart(words, status, code):
    verdict = from_exception(words, "in forward").verdict
    assert (verdict.status, verdict.reason_code) == (status, code)


@pytest.mark.parametrize(
    ("code", "status"),
    [("wrong_shape", Status.INCORRECT), ("wrong_dtype", Status.INCORRECT), ("wrong_device", Status.INCORRECT),
     ("wrong_layout", Status.INCORRECT), ("wrong_count", Status.INCORRECT), ("wrong_type", Status.INCORRECT),
     ("aliases_input", Status.REJECTED)],
)
def test_faults_of_form_keep_their_code_and_say_at_which_sizes(code, status):
    verdict = from_fault({"code": code, "detail": "the output is off"}, "M=31").verdict
    assert (verdict.status, verdict.reason_code.value) == (status, code)
    assert "the output is off" in verdict.reason
    assert "M=31" in verdict.reason


@pytest.mark.parametrize("code", ["", "ok", "none", "noisy", "no_gpu", "signal", "fastest", 7, None, ["wrong_shape"]])
def test_a_fault_that_there_is_not_breaks_the_protocol(code):
    verdict = from_fault({"code": code, "detail": "x"}, "M=31").verdict
    assert (verdict.status, verdict.reason_code) == (Status.REJECTED, ReasonCode.PROTOCOL)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(words=JSON | WORDS)
def test_no_words_of_a_worker_lead_to_ok_or_to_an_endless_or_broken_reason(words):
    for failure in (from_exception(words, "in forward"), from_fault(words, "M=1")):
        assert failure.verdict.status in {
            Status.INCORRECT, Status.REJECTED, Status.CRASHED, Status.OUT_OF_MEMORY
        }
        assert 0 < len(failure.verdict.reason) < 2000
        assert "\n" not in failure.verdict.reason


def test_control_characters_of_a_message_do_not_reach_the_terminal():
    reason = from_exception({"type": "E", "message": "\x1b[2J\x1b[31mred\x07"}, "in forward").verdict.reason
    assert "\x1b" not in reason
    assert "\x07" not in reason


def test_a_broken_protocol_says_what_was_broken():
    verdict = protocol("turn 9 is not one of this queue").verdict
    assert verdict.reason_code is ReasonCode.PROTOCOL
    assert "turn 9" in verdict.reason


CALL = {"kind": "load_inline", "arguments": {"name": "late"}, "texts": {}}


def test_calls_that_a_build_has_not_seen_are_handed_on():
    failure = unbuilt([CALL])
    assert isinstance(failure, Unbuilt) and failure.calls == [CALL]
    assert failure.verdict.reason_code is ReasonCode.BUILD_CHANGED and "('late')" in failure.verdict.reason


@pytest.mark.parametrize("told", [
    "load_inline", [{}], [CALL, None], [{**CALL, "kind": "os.system"}], [{**CALL, "texts": []}], [{**CALL, "arguments": 1}],
    [CALL] * 65, {"kind": "load"},
])
def test_calls_in_other_words_are_a_broken_protocol(told):
    failure = unbuilt(told)
    assert not isinstance(failure, Unbuilt) and failure.verdict.reason_code is ReasonCode.PROTOCOL
