"""A problem at sizes that were asked for: one, several, and those that it cannot be timed at."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.errors import InputError
from harness.formulas import Formula
from harness.problem import PROBLEMS_DIR, REPOSITORY, at_sizes, load_problem


def test_sizes_that_were_asked_for_count_on_every_device_and_several_are_several_problems():
    problem = load_problem(PROBLEMS_DIR / "tril_matmul.yaml")
    assert at_sizes(problem, []) is problem and problem.each_size() == (problem,)
    chosen = at_sizes(problem, ["M=1024", "M=256"])
    assert chosen.timed_sizes("cuda") == chosen.timed_sizes("cpu") == {"M": 1024}
    assert [each.timed_sizes("cuda") for each in chosen.each_size()] == [{"M": 1024}, {"M": 256}]
    assert [each.timed_sizes("cpu") for each in chosen.each_size()] == [{"M": 1024}, {"M": 256}]
    assert {each.hash for each in chosen.each_size()} == {problem.hash}
    assert all(each.each_size() == (each,) for each in chosen.each_size())


def test_sizes_at_which_a_formula_has_no_sense_are_refused(files):
    sinking = replace(files.load(), flops=Formula("M-100"))
    with pytest.raises(InputError, match=r"--sizes M=64,K=8,N=4: the formula 'M-100' is not positive there"):
        at_sizes(sinking, ["M=64"])


def test_a_kernelbench_file_has_no_other_sizes():
    alone = load_problem(REPOSITORY / "tests/fixtures/kernelbench/linear_relu.py")
    with pytest.raises(InputError, match="keeps its own sizes"):
        at_sizes(alone, ["M=64"])
