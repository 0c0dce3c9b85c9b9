"""The trimmed mean and its interval: worked examples, and properties that hold for any values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.stats import Interval, trimmed_mean, tukey_mclaughlin
from harness.timing.stats.trimmed_mean import winsorised_variance

FINITE = st.floats(-1e6, 1e6, allow_subnormal=False)
SAMPLES = st.lists(FINITE, min_size=2, max_size=100)
TEN = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]


def test_twenty_per_cent_of_ten_drops_two_at_each_end():
    assert trimmed_mean([-1000.0, *TEN[1:9], 1e6]) == pytest.approx(5.5)


def test_a_trim_that_divides_n_cuts_exactly_that_many_despite_rounding():
    values = [float(i) for i in range(100)]  # 0.29 * 100 is 28.999… in binary
    values[28] = -1e9
    assert trimmed_mean(values, trim=0.29) == pytest.approx(sum(sorted(values)[29:71]) / 42)


def test_winsorised_variance_of_one_to_ten_is_that_of_3334567888():
    winsorised = [3, 3, 3, 4, 5, 6, 7, 8, 8, 8]
    mean = sum(winsorised) / 10
    assert winsorised_variance(TEN) == pytest.approx(sum((x - mean) ** 2 for x in winsorised) / 9)


def test_the_interval_of_one_to_ten_is_the_one_worked_by_hand():
    # s_w² = 42.5/9, se = s_w/(0.6·√10), Student's t at 99 % with 5 degrees of freedom is 4.0321
    reach = 4.032143 * math.sqrt(42.5 / 9) / (0.6 * math.sqrt(10))
    interval = tukey_mclaughlin(TEN, confidence=0.99)
    assert interval.estimate == pytest.approx(5.5)
    assert interval.half_width == pytest.approx(reach, rel=1e-6)


def test_without_trimming_it_is_students_interval():
    interval = tukey_mclaughlin(TEN, confidence=0.95, trim=0.0)
    assert interval.half_width == pytest.approx(2.262157 * math.sqrt(55 / 6) / math.sqrt(10), rel=1e-6)


def test_one_wild_round_in_ten_does_not_move_the_interval():
    calm = tukey_mclaughlin(TEN)
    assert tukey_mclaughlin([*TEN[:9], 1e5]) == calm


@given(SAMPLES)
def test_the_estimate_lies_between_the_extremes_and_inside_its_interval(values):
    interval = tukey_mclaughlin(values)
    assert min(values) <= interval.estimate <= max(values)
    assert interval.lo <= interval.estimate <= interval.hi


@given(SAMPLES, st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(values, rng):
    shuffled = list(values)
    rng.shuffle(shuffled)
    assert tukey_mclaughlin(shuffled) == tukey_mclaughlin(values)


@given(SAMPLES, st.floats(-1e3, 1e3), st.floats(0.01, 100))
def test_shifting_and_scaling_the_values_shifts_and_scales_the_interval(values, shift, scale):
    before = tukey_mclaughlin(values)
    after = tukey_mclaughlin([shift + scale * value for value in values])
    size = max(1.0, *(abs(value) for value in values)) * scale + abs(shift)
    assert after.estimate == pytest.approx(shift + scale * before.estimate, abs=1e-9 * size)
    assert after.half_width == pytest.approx(scale * before.half_width, rel=1e-6, abs=1e-6 * size)


@given(SAMPLES)
def test_negated_values_give_the_mirrored_interval(values):
    interval, mirrored = tukey_mclaughlin(values), tukey_mclaughlin([-value for value in values])
    assert (mirrored.estimate, mirrored.lo, mirrored.hi) == (-interval.estimate, -interval.hi, -interval.lo)


@given(SAMPLES, st.floats(0.5, 0.99), st.floats(0.991, 0.9999))
def test_more_confidence_never_gives_a_narrower_interval(values, less, more):
    assert tukey_mclaughlin(values, more).half_width >= tukey_mclaughlin(values, less).half_width


@given(FINITE, st.integers(2, 50))
def test_equal_values_give_that_value_and_no_width(value, n):
    interval = tukey_mclaughlin([value] * n)
    assert interval.estimate == value
    assert interval.half_width == pytest.approx(0, abs=1e-9 * max(1, abs(value)))


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan, 2.0], [1.0, math.inf]])
def test_what_has_no_interval_is_refused(values):
    with pytest.raises(ValueError):
        tukey_mclaughlin(values)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 99.0, math.nan])
def test_a_confidence_outside_zero_to_one_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence"):
        tukey_mclaughlin(TEN, confidence)


@pytest.mark.parametrize("trim", [-0.1, 0.5, math.nan])
def test_a_trim_that_leaves_nothing_is_refused(trim):
    with pytest.raises(ValueError, match="trim"):
        trimmed_mean(TEN, trim)


def test_half_width_is_half_the_distance_between_the_ends():
    assert Interval(1.0, 0.9, 1.2).half_width == pytest.approx(0.15)
