"""What another process would get: how wide it makes an interval, and that the wide one holds what it is to hold."""

from __future__ import annotations

import math
import random

import pytest

from harness.statistics import Interval, process_share, with_share


def test_the_share_is_of_both_calls_and_less_of_longer_ones():
    assert process_share(20.0, 20.0, 0.99) == pytest.approx(2.5758 * math.sqrt(2) * 0.3 / 20.0, rel=1e-4)
    assert process_share(20.0, 2000.0, 0.99) == pytest.approx(2.5758 * math.hypot(0.3 / 20, 0.15 / 2000), rel=1e-4)
    assert process_share(150.0, 150.0, 0.99) == pytest.approx(2.5758 * math.sqrt(2) * 0.2 / 150, rel=1e-4)
    shares = [process_share(each, 3000.0, 0.99) for each in (5.0, 20.0, 99.0, 100.0, 150.0, 250.0, 1000.0)]
    assert shares[2] / shares[3] < 1.02, "no step"
    assert shares == sorted(shares, reverse=True)
    assert process_share(20.0, 20.0, 0.95) < process_share(20.0, 20.0, 0.99)


def test_the_ends_go_further_away_and_the_estimate_stays():
    narrow = Interval(2.0, 1.99, 2.02)
    wide = with_share(narrow, 0.03)
    assert wide.estimate == 2.0
    assert wide.hi == pytest.approx(2.0 * math.exp(math.hypot(math.log(1.01), 0.03)))
    assert wide.lo == pytest.approx(2.0 * math.exp(-math.hypot(math.log(2.0 / 1.99), 0.03)))
    assert with_share(narrow, 0.0) == pytest.approx(narrow)


@pytest.mark.parametrize(("candidate_us", "baseline_us"), [(22.0, 15.5), (30.0, 2700.0), (160.0, 2700.0)])
def test_it_holds_what_the_mean_of_many_processes_says(candidate_us, baseline_us):
    """Each process adds to either call what chance says, within rounds that hide 0.1 % of it."""
    draw, held, of = random.Random(7), 0, 2000
    truth, scatter = baseline_us / candidate_us, 0.001
    deviation = {22.0: 0.3, 30.0: 0.3, 15.5: 0.3, 160.0: 0.3 * 100 / 160, 2700.0: 0.15}
    for _ in range(of):
        one, other = (
            each + draw.gauss(0, deviation[each]) for each in (baseline_us, candidate_us)
        )
        found = one / other * math.exp(draw.gauss(0, scatter))
        reach = math.exp(2.5758 * scatter)
        interval = with_share(
            Interval(found, found / reach, found * reach), process_share(candidate_us, baseline_us, 0.99)
        )
        held += interval.lo <= truth <= interval.hi
    assert 0.985 * of < held < 0.995 * of


def test_a_time_that_is_none_has_an_interval_all_the_same():
    wide = with_share(Interval(1e9, 1e9, 1e9), process_share(1e-3, 1000.0, 0.99))
    assert 0 < wide.lo < 1e6 and math.isfinite(wide.hi)
