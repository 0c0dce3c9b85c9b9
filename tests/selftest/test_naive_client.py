"""The naive judge on a few tiny candidates: what it takes at its word, and what it survives."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from harness.model.problem import load_problem
from harness.sandbox import processes
from harness.selftest.corpus import CORPUS, PROBLEMS, read_case
from harness.selftest.naive_client import NaiveJudge, result_of

pytestmark = pytest.mark.processes

MODEL = """
import os
import time

import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        {body}
"""

CLOCK = """
import time

import torch

real, hidden = time.perf_counter, 0.0
time.perf_counter = lambda: real() - hidden


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        global hidden
        began = real()
        C = torch.tril(torch.matmul(A, B))
        hidden += real() - began
        return C
"""


@pytest.fixture
def said(write_case):
    """`said(body, **fields)`: what the naive judge says of a candidate whose forward is `body`, at M=192."""
    problem = replace(load_problem(CORPUS / PROBLEMS["tril_matmul"], CORPUS), cpu_sizes={"M": 192})

    def ask(body: str, **fields: str):
        return NaiveJudge("cpu", None).judge(read_case(write_case("answer/tiny", body, **fields)), problem, {})

    return ask


def test_the_product_is_correct_and_has_two_times(said):
    result = said(MODEL.format(body="return torch.tril(torch.matmul(A, B))"))
    assert (result.correct, result.raised, result.end) == (True, "", "")
    assert result.ms > 0 and result.eager_ms > 0


def test_another_product_is_wrong_and_has_no_time(said):
    result = said(MODEL.format(body="return torch.tril(torch.matmul(B, A))"))
    assert (result.correct, result.ms, result.text) == (False, None, "wrong")


def test_an_answer_that_is_off_by_a_five_hundredth_is_taken_for_the_product(said):
    assert said(MODEL.format(body="return torch.tril(torch.matmul(A, B)) * 1.002")).is_fooled("answer")


def test_a_clock_that_leaves_the_work_out_is_taken_at_its_word(said):
    result = said(CLOCK, fools="clock")
    assert result.is_fooled("clock"), result


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("raise ValueError('not today')", "raised ValueError"),
        ("return [A]", "raised TypeError"),
        ("os._exit(3)", "exited with status 3"),
        ("os._exit(0)", "exited with status 0"),
        ("os.abort()", "killed by SIGABRT"),
    ],
)
def test_what_ends_a_case_ends_that_case_only(said, body, text):
    assert said(MODEL.format(body=body)).text == text
    assert said(MODEL.format(body="return torch.tril(torch.matmul(A, B))")).correct is True


def test_a_case_that_kills_its_parent_has_no_answer_and_the_next_has_one(said):
    """The parent is the first process behind the sandbox, which the kernel shields in a namespace of its own."""
    killed = said(MODEL.format(body="os.kill(os.getppid(), 9)"))
    assert killed.correct is None and (killed.raised or killed.end)
    assert said(MODEL.format(body="return torch.tril(torch.matmul(A, B))")).correct is True


def test_a_case_that_never_ends_is_ended(said, monkeypatch):
    monkeypatch.setattr("harness.selftest.naive_client.LIMIT_S", 3.0)
    began = time.monotonic()
    assert said(MODEL.format(body="time.sleep(600)")).text == "hung"
    assert time.monotonic() - began < 15


@pytest.mark.parametrize(("at_end", "end"), [
    ("atexit.register(os._exit, 7)", "exited with status 7"),
    ("threading.Thread(target=time.sleep, args=[600]).start()", "hung"),
])
def test_what_a_case_has_left_for_the_end_of_its_process_is_waited_for(said, monkeypatch, at_end, end):
    monkeypatch.setattr("harness.selftest.naive_client.LIMIT_S", 5.0)
    leaving = f"{at_end}\n        return torch.tril(torch.matmul(A, B))"
    result = said("import atexit\nimport threading\n" + MODEL.format(body=leaving))
    assert (result.correct, result.end) == (True, end)


def test_a_child_that_a_case_leaves_behind_is_gone_before_the_next(said):
    right = "return torch.tril(torch.matmul(A, B))"
    assert said(MODEL.format(body=right)).correct is True
    before = processes.descendants(os.getpid())
    leaving = "\n        ".join(("if os.fork() == 0:", "    os.setsid()", "    time.sleep(600)", right))
    assert said(MODEL.format(body=leaving)).correct is True
    assert processes.descendants(os.getpid()) == before


@pytest.mark.parametrize("answer", [{}, {"correct": "True", "ms": "fast"}, {"ms": float("nan"), "raised": None}])
def test_an_answer_that_makes_no_sense_is_none(answer):
    assert result_of(answer, "").text == "no answer"
