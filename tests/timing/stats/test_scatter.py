"""Distances of repeated ratios from a known truth, and how many intervals hold it."""

from __future__ import annotations

import pytest

from harness.timing.stats import Interval
from harness.timing.stats.difference import Scatter, held, percentile, seen_at_most


def test_distances_are_from_the_truth_and_the_spread_is_among_themselves():
    found = Scatter.of([0.99, 1.0, 1.02])
    assert (found.n, found.worst) == (3, pytest.approx(0.02))
    assert found.spread == pytest.approx(1.02 / 0.99 - 1)
    half = Scatter.of([0.495, 0.5, 0.51], truth=0.5)
    assert half == Scatter(3, pytest.approx(0.02), pytest.approx(0.02), pytest.approx(0.51 / 0.495 - 1))


def test_the_95th_percentile_leaves_out_one_in_twenty():
    ratios = [1.0 + 0.001 * each for each in range(1, 21)]
    assert Scatter.of(ratios).p95 == pytest.approx(0.019)
    assert percentile([3.0], 0.95) == 3.0
    assert percentile([5, 1, 4, 2, 3], 0.5) == 3


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.1)])
def test_no_values_or_no_share_is_an_error(values, share):
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, share)


@pytest.mark.parametrize("ratios", [[], [1.0, 0.0], [-1.0]])
def test_a_ratio_is_positive(ratios):
    with pytest.raises(ValueError, match="ratio"):
        Scatter.of(ratios)


def test_an_interval_holds_what_lies_between_its_ends_and_on_them():
    assert held([Interval(1, 0.9, 1.1), Interval(1.2, 1.1, 1.3), Interval(1.1, 1.0, 1.2)]) == 2
    assert held([Interval(2, 1.9, 2.1)], truth=2.0) == 1


def test_nothing_seen_in_few_tries_says_little_and_in_many_more():
    assert seen_at_most(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59))  # the rule of three, exactly
    assert seen_at_most(0, 59) < 0.05 < seen_at_most(0, 58)
    assert seen_at_most(0, 0) == seen_at_most(3, 3) == 1.0
    assert seen_at_most(1, 10) == pytest.approx(0.394, abs=1e-3)
