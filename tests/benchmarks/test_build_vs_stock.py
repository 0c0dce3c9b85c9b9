"""What the table of builds says where stock was not waited for to its end."""

from __future__ import annotations

import math
import os

import pytest

from harness.build.stand_in_headers import STOCK_VARIABLE


@pytest.fixture(scope="module")
def benchmark(benchmark_named):
    return benchmark_named("build_vs_stock")


@pytest.mark.parametrize(("enough_s", "expected"), [(math.inf, (12.0, 3)), (4.0, (4.0, 1)), (4.1, (8.0, 2)), (-1.0, (0.0, 0))])
def test_stock_builds_no_further_candidate_once_it_has_taken_enough(benchmark, monkeypatch, enough_s, expected):
    """Each takes 4 s, and with PyTorch's own headers."""
    timer = object.__new__(benchmark.Timer)
    headers = []

    def seconds(chosen):
        headers.append(os.environ[STOCK_VARIABLE])
        return 4.0 * len(chosen), []

    monkeypatch.setattr(timer, "seconds", seconds, raising=False)
    assert timer.seconds_in_turn(["a", "b", "c"], enough_s) == expected
    assert headers == ["1"] * expected[1]
    assert STOCK_VARIABLE not in os.environ


def test_what_was_given_up_is_a_bound_and_what_was_not_is_a_figure(benchmark):
    whole = {"stock_s": 468.5, "ours_s": 17.9, "ratio": 468.5 / 17.9, "given_up_after": None}
    bound = {**whole, "stock_s": 188.2, "ratio": 188.2 / 17.9, "given_up_after": 4}
    keys = ("stock_s", "ours_s", "ratio")
    assert [benchmark.told(whole, key) for key in keys] == ["468", "17.9", "26.2"]
    assert [benchmark.told(bound, key) for key in keys] == ["more than 188 (4 built)", "17.9", "more than 10.5"]
    assert benchmark.told({**whole, "stock_s": None}, "stock_s") == ""
