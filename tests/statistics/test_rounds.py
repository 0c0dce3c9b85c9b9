"""One round of four segments, and the ratio it yields."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.statistics import estimate_speedup, log_ratio, median, order_of_round

TIMES = st.lists(st.floats(0.5, 1e6), min_size=1, max_size=20)
ARM = st.lists(TIMES, min_size=2, max_size=2)


def test_rounds_alternate_so_that_neither_arm_always_goes_first():
    assert [order_of_round(index) for index in range(4)] == ["ABBA", "BAAB", "ABBA", "BAAB"]


def test_a_candidate_that_takes_half_the_time_has_a_log_ratio_of_log_two():
    assert log_ratio([[1.0, 1.0], [1.0]], [[2.0], [2.0, 2.0]]) == pytest.approx(math.log(2))


def test_one_slow_launch_in_a_segment_of_ten_is_forgiven():
    assert log_ratio([[1.0] * 9 + [900.0], [1.0]], [[1.0], [1.0]]) == 0


def test_launches_of_two_kinds_count_half_each_whichever_is_one_more():
    fast, slow = [15.0] * 8, [17.0] * 8
    even = log_ratio([[16.0], [16.0]], [fast + slow, fast + slow])
    assert even == pytest.approx((math.log(15) + math.log(17)) / 2 - math.log(16))
    one_more = log_ratio([[16.0], [16.0]], [fast + slow + [17.0], fast + slow + [15.0]])
    assert one_more == pytest.approx(even, abs=1e-2)


@given(ARM, ARM)
def test_exchanging_the_arms_changes_the_sign_only(a, b):
    assert log_ratio(a, b) == -log_ratio(b, a)


@given(ARM, ARM, st.floats(0.1, 10))
def test_a_clock_that_runs_slow_for_both_arms_does_not_show(a, b, factor):
    slowed = [[[time * factor for time in segment] for segment in arm] for arm in (a, b)]
    assert log_ratio(*slowed) == pytest.approx(log_ratio(a, b), abs=1e-9)


@given(st.sampled_from([0, 1]), st.floats(-0.1, 0.1), st.floats(0.2, 5))
def test_a_drift_that_is_linear_over_the_round_cancels(index, drift, speedup):
    arms = {"A": [], "B": []}
    for position, arm in enumerate(order_of_round(index)):
        arms[arm].append([100 * (speedup if arm == "B" else 1) * math.exp(drift * position)])
    assert log_ratio(arms["A"], arms["B"]) == pytest.approx(math.log(speedup), abs=1e-9)


@pytest.mark.parametrize("arm", [[], [[1.0]], [[1.0]] * 3, [[1.0], []], [[1.0], [0.0]], [[1.0], [-1.0]],
                                 [[1.0], [math.nan]], [[1.0], [math.inf]]])
def test_a_round_that_is_no_round_is_refused(arm):
    with pytest.raises(ValueError):
        log_ratio(arm, [[1.0], [1.0]])


@given(TIMES)
def test_the_median_has_as_many_values_below_as_above(values):
    middle = median(values)
    assert sum(value < middle for value in values) <= len(values) / 2
    assert sum(value > middle for value in values) <= len(values) / 2


def test_the_speedup_is_the_ratio_and_not_its_log():
    interval = estimate_speedup([math.log(2) + noise for noise in (-0.01, 0.0, 0.01, 0.0, 0.005, -0.005)])
    assert interval.lo < interval.estimate < interval.hi
    assert interval.estimate == pytest.approx(2)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=80))
def test_the_speedup_of_a_over_b_is_one_over_that_of_b_over_a(log_ratios):
    forward, backward = estimate_speedup(log_ratios), estimate_speedup([-value for value in log_ratios])
    assert forward.estimate == pytest.approx(1 / backward.estimate)
    if forward.hi < 1e100:
        assert forward.hi == pytest.approx(1 / backward.lo)
