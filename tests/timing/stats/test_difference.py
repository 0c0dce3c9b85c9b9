"""Changes and geometric means with their intervals: the arithmetic, its symmetry, and how often it covers the truth."""

from __future__ import annotations

import math
import random

import pytest

from harness.timing.stats.difference import change, geometric_mean
from harness.timing.stats.trimmed_mean import Interval


def around(estimate: float, relative: float) -> Interval:
    return Interval(estimate, estimate / (1 + relative), estimate * (1 + relative))


def test_half_widths_add_in_quadrature_in_log_space():
    found = change(around(2.0, 0.03), around(3.0, 0.04))
    half = math.hypot(math.log(1.03), math.log(1.04))
    assert found.estimate == pytest.approx(1.5)
    assert (math.log(found.hi / found.estimate), math.log(found.estimate / found.lo)) == pytest.approx((half, half))


def test_the_change_back_is_one_over_the_change_there():
    a, b = Interval(2.0, 1.9, 2.3), Interval(1.0, 0.95, 1.01)
    there, back = change(a, b), change(b, a)
    assert (1 / back.hi, 1 / back.estimate, 1 / back.lo) == pytest.approx((there.lo, there.estimate, there.hi))


def test_the_side_that_matters_is_taken_of_a_lopsided_interval():
    wide_above = Interval(1.0, 1.0, 1.5)
    exact = Interval(1.0, 1.0, 1.0)
    assert change(exact, wide_above).lo == 1.0 and change(exact, wide_above).hi == pytest.approx(1.5)
    assert change(wide_above, exact).hi == 1.0 and change(wide_above, exact).lo == pytest.approx(1 / 1.5)


def test_99_percent_intervals_of_normal_logs_give_a_99_percent_interval_of_the_change():
    draw, z, sigma, tries = random.Random(3), 2.5758, 0.01, 4000
    covered = 0
    for _ in range(tries):
        seen = [math.exp(draw.gauss(math.log(truth), s)) for truth, s in ((2.0, sigma), (2.2, 3 * sigma))]
        ends = [Interval(x, x * math.exp(-z * s), x * math.exp(z * s)) for x, s in zip(seen, (sigma, 3 * sigma))]
        found = change(*ends)
        covered += found.lo <= 1.1 <= found.hi
    assert 0.984 <= covered / tries <= 0.996


def test_the_mean_of_n_like_ratios_is_the_root_of_n_narrower():
    one, four = geometric_mean([around(2.0, 0.04)]), geometric_mean([around(2.0, 0.04)] * 4)
    assert four.estimate == pytest.approx(2.0)
    assert math.log(one.hi / one.lo) == pytest.approx(2 * math.log(four.hi / four.lo))


def test_twice_and_half_as_fast_come_to_no_change():
    assert geometric_mean([around(2.0, 0.01), around(0.5, 0.01)]).estimate == pytest.approx(1.0)


@pytest.mark.parametrize("bad", [Interval(0.0, 0.0, 1.0), Interval(1.0, -0.1, 1.1), Interval(1.0, 1.2, 1.1)])
def test_what_is_no_positive_ratio_is_refused(bad):
    with pytest.raises(ValueError, match="a ratio cannot be"):
        change(bad, around(1.0, 0.1))
    with pytest.raises(ValueError, match="no ratios"):
        geometric_mean([])
