"""The same baseline in two processes: when they agree, and how far the interval reaches."""

from __future__ import annotations

import random

import pytest

from harness.timing.stats import (
    Interval, baselines_agree, check_of, confidence_at, estimate_log_ratio, may_be_processes, narrows_by, next_check,
    reaching, spanning, unseen,
)
from harness.timing.stats.trimmed_mean import reach_of


@pytest.mark.parametrize(
    ("apart", "baseline_us", "agree"),
    [(0.0, 15.0, True), (0.05, 15.0, True), (0.08, 15.0, False), (0.02, 500.0, True), (0.04, 500.0, False),
     (-0.05, 15.0, True), (-0.5, 15.0, False), (0.025, 999.0, True), (0.0009, 1000.0, True), (0.0011, 1000.0, False),
     (0.0009, 5000.0, True), (-0.0011, 5000.0, False)],
)
def test_they_agree_to_three_per_cent_or_a_microsecond_and_long_calls_to_the_least_of_it(apart, baseline_us, agree):
    in_worker = [0.7 + apart, 0.701 + apart, 0.699 + apart]
    assert baselines_agree(in_worker, [0.7, 0.701, 0.699], baseline_us) is agree


@pytest.mark.parametrize(
    ("apart", "baseline_us", "may_be"),
    [(0.08, 15.0, True), (-0.12, 15.0, True), (0.3, 15.0, False), (0.08, 500.0, True), (0.1, 500.0, False),
     (0.0029, 2000.0, True), (0.0031, 2000.0, False)],
)
def test_beyond_that_they_may_be_processes_up_to_three_times_as_much(apart, baseline_us, may_be):
    in_worker = [0.7 + apart, 0.701 + apart, 0.699 + apart]
    assert may_be_processes(in_worker, [0.7, 0.701, 0.699], baseline_us) is may_be


def test_an_interval_that_spans_both_is_about_the_baseline_outside():
    in_worker, outside = Interval(1.0, 0.996, 1.004), Interval(1.067, 1.063, 1.071)
    assert spanning(in_worker, outside) == Interval(1.067, 0.996, 1.071)
    assert spanning(outside, in_worker) == Interval(1.0, 0.996, 1.071)


def test_what_no_baseline_shows_of_a_process_is_a_microsecond_of_the_shorter_call():
    found = unseen(Interval(2.0, 1.99, 2.01), 10.0)
    assert found.estimate == 2.0 and found.lo == pytest.approx(1.99 / 1.1) and found.hi == pytest.approx(2.01 * 1.1)


def test_the_interval_holds_both_and_the_estimate_is_that_of_the_first():
    in_worker = Interval(1.0, 0.999, 1.001)
    assert reaching(in_worker, Interval(1.02, 1.01, 1.03)) == Interval(1.0, 0.999, 1.02)
    assert reaching(in_worker, Interval(0.98, 0.97, 0.99)) == Interval(1.0, 0.97, 1.001)
    assert reaching(in_worker, Interval(1.0005, 1.0, 1.001)) == in_worker


def test_the_low_end_is_never_above_that_of_the_baseline_outside():
    outside = Interval(1.0, 0.998, 1.002)
    for slowed in (1.0, 1.01, 1.0299):  # as much as the guard lets pass
        assert reaching(Interval(slowed, slowed - 1e-4, slowed + 1e-4), outside).lo <= outside.lo


def scattered(rng, n, centre, sigma=0.003):
    return [centre + rng.gauss(0, sigma) for _ in range(n)]


def test_baselines_at_one_place_leave_all_the_narrowing_to_the_rounds():
    wobble = [0.001, -0.001] * 10
    alike = narrows_by(wobble, wobble, 40, 0.9975)
    assert alike == pytest.approx(1 - reach_of(40, 0.9975) / reach_of(20, 0.9975)) == pytest.approx(0.38, abs=0.01)


def test_what_lies_between_the_baselines_is_not_narrowed_by_rounds():
    wobble = [0.001, -0.001] * 10
    apart = [narrows_by(wobble, [each + far for each in wobble], 40, 0.9975) for far in (0.0, 0.002, 0.01, 0.1)]
    assert apart == sorted(apart, reverse=True) and apart[-1] < 0.01


def test_rounds_without_any_scatter_narrow_nothing():
    assert narrows_by([0.0] * 10, [0.0] * 10, 20, 0.9975) == 0.0


def test_stopping_where_rounds_no_longer_narrow_keeps_the_confidence():
    """Inside and out scatter by 0.3 % a round, and the two processes by 0.6 % for life: the interval holds what the
    processes come to, as often as it says, wherever the rounds were stopped.
    """
    rng, missed, rounds = random.Random(5), 0, []
    for _ in range(1500):
        between, in_worker, outside = rng.gauss(0, 0.006), [], []
        while (at := next_check(len(in_worker))) is not None:
            in_worker += scattered(rng, at - len(in_worker), 0.0)
            outside += scattered(rng, at - len(outside), between)
            level = confidence_at(check_of(at))
            later = next_check(at)
            if later is None or narrows_by(in_worker, outside, later, level) < 0.2:
                break
        rounds.append(len(in_worker))
        found = reaching(estimate_log_ratio(in_worker, level), estimate_log_ratio(outside, level))
        missed += not found.lo <= 0.0 <= found.hi
    assert missed <= 0.01 * 1500
    assert sum(rounds) / len(rounds) < 45, "of 80"
