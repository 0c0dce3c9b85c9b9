"""When to look, with what confidence, and when to stop."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.stats import Interval, check_of, confidence_at, next_check, should_stop

CHECKS = (10, 20, 40, 80)


@given(st.integers(1, 12), st.floats(0.5, 0.999))
def test_the_errors_of_all_looks_add_up_to_the_error_allowed(count, confidence):
    interim_checks = tuple(10 * 2**index for index in range(count))
    spent = sum(1 - confidence_at(index, interim_checks, confidence) for index in range(count))
    assert spent == pytest.approx(1 - confidence)


def test_four_looks_at_99_per_cent_take_99_75_each():
    assert confidence_at(0, CHECKS, 0.99) == pytest.approx(0.9975)


@pytest.mark.parametrize("index", [-1, 4])
def test_a_look_that_was_not_planned_has_no_confidence(index):
    with pytest.raises(IndexError):
        confidence_at(index, CHECKS, 0.99)


@pytest.mark.parametrize("done, expected", [
    (0, 10), (9, 10), (10, 20), (27, 40), (40, 80), (80, None), (200, None),
])
def test_the_next_look_is_the_first_one_not_yet_reached(done, expected):
    assert next_check(done, CHECKS) == expected


def test_an_end_between_two_looks_is_paid_for_by_the_one_it_replaces():
    assert [check_of(done, CHECKS) for done in (3, 10, 11, 27, 80, 99)] == [0, 0, 1, 2, 3, 3]


def test_measuring_stops_as_soon_as_the_interval_is_as_narrow_as_asked():
    def interval(half_width):
        return Interval(0.5, 0.5 - half_width, 0.5 + half_width)

    assert should_stop(interval(0.00099), 0.001)
    assert not should_stop(interval(0.00101), 0.001)
    assert not should_stop(interval(math.nan), 0.001)
