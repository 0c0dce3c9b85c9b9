"""The interval over several workers: what widens it, and what it holds."""

from __future__ import annotations

import math

import pytest

from harness.judge.published_speedup import published
from harness.timing.stats import Interval, estimate_speedup
from harness.timing.timings import Timing


def timing_of(ratios):
    timing = Timing(log_ratios=list(ratios))
    timing.speedup = estimate_speedup(timing.log_ratios, 0.99)
    return timing


def test_workers_that_differ_more_than_their_own_rounds_widen_the_interval():
    spread = [timing_of([centre + wobble for wobble in (-1e-4, 0, 1e-4, 0, 0)]) for centre in (0.0, 0.02, 0.04)]
    found = published(spread, 0.99, (10,))
    single = estimate_speedup(spread[0].log_ratios, 0.99)
    assert math.log(found.hi / found.lo) > 5 * math.log(single.hi / single.lo)
    assert found.estimate == pytest.approx(math.exp(0.02), rel=1e-6)


def test_rounds_that_differ_more_than_the_workers_widen_it_as_well():
    noisy = [timing_of([-0.3, -0.1, 0.0, 0.1, 0.3]) for _ in range(5)]
    found = published(noisy, 0.99, (10, 20))
    pooled = estimate_speedup([ratio for timing in noisy for ratio in timing.log_ratios], 0.995)
    assert found.hi / found.lo == pytest.approx(pooled.hi / pooled.lo)
    assert found.lo < 1 < found.hi


def test_the_published_interval_holds_its_own_estimate():
    found = published([timing_of([0.1, 0.11, 0.1]), timing_of([0.12, 0.1, 0.13])], 0.99, (10,))
    assert isinstance(found, Interval)
    assert found.lo <= found.estimate <= found.hi


def test_its_low_end_is_over_a_baseline_that_no_worker_slowed_down():
    timings = [timing_of([0.1, 0.11, 0.1]), timing_of([0.12, 0.1, 0.13])]
    found = published(timings, 0.99, (10,))
    timings[1].times_slowed = 1.25
    assert published(timings, 0.99, (10,)).lo == pytest.approx(found.lo / 1.25)


def beside(in_worker, outside):
    """A worker with the baseline in it too."""
    timing = timing_of(outside)
    timing.in_worker_log_ratios, timing.baseline_us = list(in_worker), [20.0]
    timing.speedup = estimate_speedup(timing.ratios)
    return timing


def test_several_workers_reach_to_the_judges_baseline_as_well():
    in_worker = [0.0, 0.001, -0.001]
    found = published([beside(in_worker, [0.02, 0.021, 0.019]), beside(in_worker, [0.018, 0.02, 0.022])], 0.99, (10,))
    assert found.estimate == pytest.approx(1.0, abs=1e-4)
    assert found.hi == pytest.approx(math.exp(0.02), abs=1e-3)


def test_one_worker_that_disagrees_frees_no_other_from_the_judges_baseline():
    """Four slow the baseline in the worker by what may pass, and the fifth by so much that its own is not taken."""
    wobble = [1e-4, 0.0, -1e-4]
    allowed = [beside([0.025 + each for each in wobble], wobble) for _ in range(4)]
    disagreeing = beside([0.5 + each for each in wobble], wobble)
    found = published([*allowed, disagreeing], 0.99, (10,))
    for each in (*allowed, disagreeing):
        each.wants_in_worker, each.candidate_us = True, [10.0]
    wider = published([*allowed, disagreeing], 0.99, (10,))
    assert wider.hi == pytest.approx(1.1 * found.hi) and wider.lo == pytest.approx(found.lo / 1.1)
    assert found.estimate == pytest.approx(1.0, abs=1e-6) and found.hi < 1.001


def test_a_worker_that_is_apart_as_processes_are_has_the_interval_span_both():
    wobble = [1e-4, 0.0, -1e-4]
    agreeing = [beside(wobble, wobble) for _ in range(4)]
    apart = beside([0.07 + each for each in wobble], wobble)
    for each in (*agreeing, apart):
        each.wants_in_worker, each.candidate_us = True, [20.0]
    assert apart.apart_as_processes and not apart.unseen_process
    found = published([*agreeing, apart], 0.99, (10,))
    assert found.estimate == pytest.approx(1.0, abs=1e-6)
    assert found.hi > 1.01 and found.lo == pytest.approx(1.0, abs=0.06), "over the baselines inside, which one lifts"
