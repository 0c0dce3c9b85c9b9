"""Which frames are a builder's, and what an exception of the judge's own becomes while it reads them."""

from __future__ import annotations

import pytest

from harness.build import outcome
from harness.build.answers import check_answer, check_question
from harness.build.flags import unknown_flags
from harness.model.verdict import ReasonCode, Status
from harness.protocol.frames import BadFrame

from .conftest import PLAIN_CANDIDATE

EXTENSION = {"key": "k", "path": "/x.so", "module_name": "m", "cuda": True, "headers": "slim", "is_python_module": True}
FAILURE = {"kind": "compile_error", "message": "refused"}
QUESTION = {"compile": {"kind": "load", "arguments": {}, "texts": {}, "state": {"common": []}}, "slim_headers": True}


def answer(**changes):
    return {"extensions": [EXTENSION], "log": "", "failure": None, "warnings": [], "files": [], **changes}


@pytest.mark.parametrize("frame", [
    answer(), answer(failure=FAILURE), answer(failed=["k"]), answer(extensions=[{**EXTENSION, "refused": {"sm_80": "why"}}]),
    {"extensions": [], "log": "", "files": [], "failed": [], "failure": None},
])
def test_an_answer_of_a_builder_is_one(frame):
    check_answer(frame)


@pytest.mark.parametrize("frame", [
    {}, {"extensions": None}, answer(extensions=7), answer(extensions=[7]), answer(extensions=[{"key": "k"}]),
    answer(extensions=[{**EXTENSION, "key": ["k"]}]), answer(extensions=[{**EXTENSION, "path": None}]),
    answer(extensions=[{**EXTENSION, "refused": ["sm_80"]}]), answer(failure={"kind": "unheard of", "message": ""}),
    answer(failure={"kind": ["compile_error"], "message": ""}), answer(failure={"kind": "compile_error"}),
    answer(extensions=[{**EXTENSION, "module_name": "m" * 2000}]), answer(failed=["k" * 2000]), answer(failure="refused"), answer(warnings="w"), answer(files=7), answer(files=None), answer(failed=7),
])
def test_an_answer_that_no_builder_of_ours_gives_is_no_frame(frame):
    with pytest.raises(BadFrame):
        check_answer(frame)


@pytest.mark.parametrize("frame", [
    {**QUESTION, "compile": None}, {"compile": QUESTION["compile"]}, {**QUESTION, "compile": {"arguments": {}}},
    {**QUESTION, "compile": {"arguments": [], "state": {"common": []}}},
    {**QUESTION, "compile": {"arguments": {}, "state": {"common": 7}}},
])
def test_a_question_in_other_words_than_a_builders_is_no_frame(frame):
    check_question(QUESTION)
    with pytest.raises(BadFrame):
        check_question(frame)


def test_flags_that_are_no_list_are_left_to_pytorch_to_refuse():
    assert unknown_flags({"arguments": {"name": "x", "extra_cflags": 7, "extra_cuda_cflags": None}}) == []


@pytest.mark.processes
@pytest.mark.parametrize("error", [KeyError, TypeError, ValueError, AttributeError])
def test_an_exception_of_the_judges_own_while_it_reads_an_answer_is_the_harnesss(build_pool, monkeypatch, error):
    def defect(*_, **__):
        raise error("of the judge's own")

    monkeypatch.setattr(outcome, "_extensions", defect)
    (build,) = build_pool.build(build_pool.write("plain", PLAIN_CANDIDATE))
    assert (build.verdict.status, build.verdict.reason_code) == (Status.HARNESS_ERROR, ReasonCode.EXCEPTION)
    assert "of the judge's own" in build.verdict.reason
    assert build.log.startswith("Traceback") and "in defect" in build.log
