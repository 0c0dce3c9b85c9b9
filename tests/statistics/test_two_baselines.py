"""The same baseline in two processes: when they agree, and how far the interval reaches."""

from __future__ import annotations

import pytest

from harness.statistics import Interval, baselines_agree, reaching


@pytest.mark.parametrize(
    ("apart", "baseline_us", "agree"),
    [(0.0, 15.0, True), (0.05, 15.0, True), (0.08, 15.0, False), (0.02, 500.0, True), (0.04, 500.0, False),
     (-0.05, 15.0, True), (-0.5, 15.0, False)],
)
def test_they_agree_to_three_per_cent_or_a_microsecond(apart, baseline_us, agree):
    inside = [0.7 + apart, 0.701 + apart, 0.699 + apart]
    assert baselines_agree(inside, [0.7, 0.701, 0.699], baseline_us) is agree


def test_the_interval_holds_both_and_the_estimate_is_that_of_the_first():
    inside = Interval(1.0, 0.999, 1.001)
    assert reaching(inside, Interval(1.02, 1.01, 1.03)) == Interval(1.0, 0.999, 1.02)
    assert reaching(inside, Interval(0.98, 0.97, 0.99)) == Interval(1.0, 0.97, 1.001)
    assert reaching(inside, Interval(1.0005, 1.0, 1.001)) == inside


def test_the_low_end_is_never_above_that_of_the_baseline_outside():
    outside = Interval(1.0, 0.998, 1.002)
    for slowed in (1.0, 1.01, 1.0299):  # as much as the guard lets pass
        assert reaching(Interval(slowed, slowed - 1e-4, slowed + 1e-4), outside).lo <= outside.lo
