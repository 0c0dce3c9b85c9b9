"""The call beside a speedup, and the margin it depends on."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.stats import Interval, margin, speedup_word, width_for


@pytest.mark.parametrize("duration_us, expected", [
    (2700, 0.001), (1000, 0.001), (999.9, 0.002), (50, 0.002), (49.9, 0.005), (2, 0.005), (0, 0.005),
])
def test_shorter_calls_have_wider_margins(duration_us, expected):
    assert margin(duration_us) == expected


@pytest.mark.parametrize("duration_us", [-1.0, math.nan])
def test_a_duration_that_is_none_has_no_margin(duration_us):
    with pytest.raises(ValueError):
        margin(duration_us)


@pytest.mark.parametrize(("half_width", "duration_us", "expected"), [
    (0.001, 2700.0, 0.001), (0.001, 1000.0, 0.001), (0.001, 356.0, 0.002), (0.001, 16.0, 0.005),
    (0.0005, 2700.0, 0.0005), (0.0005, 356.0, 0.001), (0.0005, 16.0, 0.0025),
    (0.005, 2700.0, 0.005), (0.005, 356.0, 0.005), (0.005, 16.0, 0.005),
])
def test_shorter_calls_may_stop_wider_but_never_beyond_their_margin(half_width, duration_us, expected):
    assert width_for(half_width, duration_us) == pytest.approx(expected)

@pytest.mark.parametrize("lo, hi, expected", [
    (1.0011, 1.2, "FASTER"),
    (1.001, 1.2, "UNSURE"),
    (0.5, 0.9989, "SLOWER"),
    (0.5, 0.999, "UNSURE"),
    (0.999, 1.001, "SAME"),
    (0.9989, 1.001, "UNSURE"),
    (0.9, 1.1, "UNSURE"),
    (math.nan, math.nan, "UNSURE"),
])
def test_a_call_at_one_millisecond_needs_the_whole_interval(lo, hi, expected):
    assert speedup_word(Interval((lo + hi) / 2, lo, hi), 1000) == expected


def test_the_same_interval_may_be_faster_for_a_long_call_and_the_same_for_a_short_one():
    interval = Interval(1.003, 1.002, 1.004)
    assert (speedup_word(interval, 2000), speedup_word(interval, 10)) == ("FASTER", "SAME")


@pytest.mark.parametrize(("lo", "hi", "apart", "expected"), [
    (1.02, 1.05, 0.019, "FASTER"), (1.02, 1.05, 0.02, "UNSURE"), (0.95, 0.981, 0.02, "UNSURE"), (0.95, 0.98, 0.01, "SLOWER"),
    (0.9995, 1.0005, 0.3, "SAME"), (0.998, 1.002, 0.3, "UNSURE"), (3.0, 4.0, 0.9, "FASTER"),
    (0.01, 0.02, 30.0, "SLOWER"), (0.01, 0.04, 30.0, "UNSURE"), (0.01, 0.02, math.inf, "UNSURE"),
])
def test_nothing_is_called_by_less_than_the_control_is_off_itself(lo, hi, apart, expected):
    assert speedup_word(Interval((lo + hi) / 2, lo, hi), 1000, apart) == expected


@given(st.floats(0.5, 2), st.floats(0, 0.5), st.floats(0, 1e5))
def test_a_call_is_never_made_against_its_own_estimate(estimate, reach, duration_us):
    word = speedup_word(Interval(estimate, estimate - reach, estimate + reach), duration_us)
    assert not (word == "FASTER" and estimate <= 1)
    assert not (word == "SLOWER" and estimate >= 1)
