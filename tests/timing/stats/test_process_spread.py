"""What another process would get: how wide it makes an interval, and that the wide one holds what it is to hold."""

from __future__ import annotations

import math
import random

import pytest

from harness.timing.stats import Interval, PooledBaseline, eager_share, lowered, process_share, shifted, with_share


def test_the_share_is_of_both_calls_and_less_of_longer_ones():
    assert process_share(20.0, 20.0, 0.99, kernels=1) == pytest.approx(2.5758 * math.hypot(0.15, 0.3) / 20.0, rel=1e-4)
    assert process_share(20.0, 2000.0, 0.99) == pytest.approx(2.5758 * math.hypot(0.3 / 20, 0.15 / 2000), rel=1e-4)
    assert process_share(150.0, 70.0, 0.99, kernels=10) == pytest.approx(2.5758 * math.hypot(1.5 / 150, 0.15 / 70), rel=1e-4)
    shares = [process_share(each, 3000.0, 0.99) for each in (5.0, 20.0, 99.0, 100.0, 150.0, 250.0, 1000.0)]
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
    deviation = {22.0: 0.15, 30.0: 0.15, 15.5: 0.3, 160.0: 0.15, 2700.0: 0.15}
    for _ in range(of):
        one, other = (
            each + draw.gauss(0, deviation[each]) for each in (baseline_us, candidate_us)
        )
        found = one / other * math.exp(draw.gauss(0, scatter))
        reach = math.exp(2.5758 * scatter)
        interval = with_share(
            Interval(found, found / reach, found * reach), process_share(candidate_us, baseline_us, 0.99, kernels=1)
        )
        held += interval.lo <= truth <= interval.hi
    assert 0.985 * of < held < 0.995 * of


def test_a_time_that_is_none_has_an_interval_all_the_same():
    wide = with_share(Interval(1e9, 1e9, 1e9), process_share(1e-3, 1000.0, 0.99))
    assert 0 < wide.lo < 1e6 and math.isfinite(wide.hi)


@pytest.mark.parametrize("kernels", [2, 10])
@pytest.mark.parametrize("processes", [2, 4, 10])
def test_over_the_mean_of_several_processes_it_holds_it_as_well_and_is_narrower(processes, kernels):
    draw, held, of, widths = random.Random(processes), 0, 2000, []
    for _ in range(of):
        baseline_pool = [15.5 + draw.gauss(0, 0.15 * kernels) for _ in range(processes)]  # the first is the judge's
        over = PooledBaseline.of([math.log(each / baseline_pool[0]) for each in baseline_pool[1:]])
        found = baseline_pool[0] / (22.0 + draw.gauss(0, 0.15))
        share = process_share(22.0, baseline_pool[0], 0.99, over, kernels=1, baseline_kernels=kernels)
        interval = with_share(shifted(Interval(found, found, found), over), share)
        held += interval.lo <= 15.5 / 22.0 <= interval.hi
        widths.append(share)
    assert held > 0.985 * of
    assert sum(widths) / of < 0.85 * process_share(22.0, 15.5, 0.99, kernels=1, baseline_kernels=kernels)


def test_what_many_kernels_add_is_taken_for_independent_beyond_what_was_seen():
    shares = {kernels: process_share(4000.0, 1e9, 0.99, kernels=kernels) for kernels in (1, 10, 40, 1000)}
    assert [shares[each] / shares[1] for each in (10, 40, 1000)] == pytest.approx([10, 20, 100], rel=1e-3)


def test_who_slows_the_baseline_beside_it_raises_the_estimate_and_not_the_low_end():
    over = PooledBaseline.of([0.01], usual_us=15.5)
    honest = Interval(1.0, 0.97, 1.03)
    assert lowered(honest, over, 15.5) == honest == lowered(honest, over, 14.0)
    assert lowered(Interval(1.2, 1.164, 1.236), over, 18.6).lo == pytest.approx(0.97)
    assert lowered(Interval(1.2, 1.164, 1.236), over, 18.6).hi == 1.236


def test_processes_that_are_further_apart_than_was_seen_before_widen_it():
    usual, wild = PooledBaseline.of([0.01, -0.01, 0.02]), PooledBaseline.of([0.1, -0.1, 0.2])
    assert eager_share(15.5, 0.99, usual) == pytest.approx(2.5758 * 0.3 / 15.5 / 2, rel=1e-4)
    assert eager_share(15.5, 0.99, wild) == pytest.approx(2.5758 * wild.deviation / 2, rel=1e-4)
    assert wild.deviation > 0.1


def test_the_mean_of_one_process_is_its_own():
    assert PooledBaseline.of([]) == PooledBaseline(0.0, 1, 0.0)
    assert eager_share(15.5, 0.99, PooledBaseline.of([])) == eager_share(15.5, 0.99)
