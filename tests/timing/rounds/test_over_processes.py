"""A short eager's mean over several processes: what a speedup over it is, and how far it reaches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from harness.judge.control_keeper import BaselinePool
from harness.judge.published_speedup import published
from harness.timing.estimate import allow_for_other_processes
from harness.timing.stats import Interval, PooledBaseline, eager_share, process_share
from harness.timing.timings import Timing

FOUR = PooledBaseline(shift=0.02, processes=4, deviation=0.001)


def test_it_is_over_the_mean_and_not_over_what_eager_took_in_the_candidates_process(beside):
    timing, _ = beside(22.0, 15.1, 15.5, is_control=False, pooled_baseline=FOUR)
    assert timing.is_pooled and timing.agreeing
    assert timing.speedup.estimate == pytest.approx(15.5 / 22 * math.exp(0.02))
    share = process_share(22.0, 15.5, 0.99, FOUR)
    assert share < 0.75 * process_share(22.0, 15.5, 0.99)
    one = process_share(22.0, 15.5, 0.99, FOUR, kernels=1)
    allow_for_other_processes(timing, 0.99, kernels=1)
    assert timing.speedup.hi / timing.speedup.estimate == pytest.approx(math.exp(one)) and one < 0.75 * share
    allow_for_other_processes(timing, 0.99)
    assert timing.speedup.hi / timing.speedup.estimate == pytest.approx(math.exp(share))
    assert timing.speedup.estimate / timing.speedup.lo == pytest.approx(math.exp(share))
    assert timing.scattered.half_width == pytest.approx(0, abs=1e-9) and not timing.notes


def test_a_candidate_that_slows_eager_in_its_own_process_gains_nothing(beside):
    honest, cheat = (
        beside(22.0, in_worker_us, 15.5, is_control=False, pooled_baseline=FOUR)[0] for in_worker_us in (15.5, 16.4)
    )
    assert cheat.speedup == honest.speedup


def test_two_eagers_that_disagree_are_said_and_another_process_is_asked(beside):
    timing, _ = beside(22.0, 17.0, 15.5, is_control=False, pooled_baseline=FOUR)
    assert timing.notes == [
        "eager took 17.0 µs in its process and 15.5 µs in the judge's: the speedup is over its mean of 4 processes"
    ]
    assert timing.deserves_another_process
    assert beside(22.0, 17.0, 15.5, is_control=False)[0].deserves_another_process
    timing, _ = beside(22.0, "raises", 15.5, is_control=False, pooled_baseline=FOUR)
    assert "could not be timed in its process (raised RuntimeError: patched): the speedup is over its mean" in timing.notes[0]


@pytest.mark.parametrize("b_us", [15.5, 16.5, 18.4])
def test_a_candidate_that_slows_the_judges_eager_is_not_called_faster_for_it(beside, b_us):
    """As a thread of its process could, which launches something while it has no call of its own."""
    known = replace(FOUR, usual_us=15.5)
    timing, honest = (beside(16.0, 15.5, each, is_control=False, pooled_baseline=known)[0] for each in (b_us, 15.5))
    assert timing.speedup.lo == pytest.approx(honest.speedup.lo, rel=0.01) and timing.word == "UNSURE"


@pytest.mark.parametrize("how", ["control", "alone"])
def test_where_it_says_no_more_than_the_candidates_own_process_that_one_counts(beside, how):
    b_us = 15.5
    timing, _ = beside(
        b_us / 2, b_us + 0.2, b_us, is_control=how == "control", pooled_baseline=None if how == "alone" else FOUR
    )
    assert not timing.is_pooled and timing.speedup.estimate == pytest.approx(2 * (b_us + 0.2) / b_us)


def test_on_a_cpu_there_is_no_mean(scripted, small_regions, reference_of, settings):
    from harness.timing.rounds import Rounds

    log = []
    session, backend = scripted.Session(lambda _: 22.0, log), scripted.Backend(15.5, log, "cpu")
    timing = Rounds(
        session, backend, reference_of(), settings, lambda sets, made, only=None: None, {1}, pooled_baseline=FOUR
    ).run()
    assert not timing.is_pooled and timing.speedup == timing.scattered


def wobbling(scripted, reference_of, settings, pooled_baseline):
    log, wobble = [], [22.0, 22.06, 21.95, 22.03, 21.97, 22.08, 21.92]
    session, backend = scripted.Session(lambda segment: wobble[segment % len(wobble)], log), scripted.Backend(15.5, log, "cuda")
    session.in_worker_us = 15.5
    from harness.timing.rounds import Rounds

    wanted = replace(settings, half_width=1e-6, budget_s=600.0, looks=(10, 20, 40))
    return Rounds(
        session, backend, reference_of(), wanted, lambda sets, made, only=None: None, {1}, pooled_baseline=pooled_baseline
    ).run()


def test_rounds_end_where_more_of_them_would_hardly_narrow_the_interval(scripted, small_regions, reference_of, settings):
    timing = wobbling(scripted, reference_of, settings, FOUR)
    assert len(timing.log_ratios) == 10
    share = process_share(timing.time_us, timing.baseline_time_us, 0.99, FOUR, kernels=1)
    assert 0 < timing.scattered.half_width / timing.scattered.estimate < 0.3 * share
    allow_for_other_processes(timing, 0.99, kernels=1)
    assert math.log(timing.speedup.hi / timing.speedup.estimate) < 1.05 * share
    assert len(wobbling(scripted, reference_of, settings, None).log_ratios) > 10


def control(inside_over_outside, baseline_us=15.5):
    """What a control left whose process had eager so much slower than the judge's (log)."""
    return Timing(
        wants_in_worker=baseline_us < 1000, baseline_us=[baseline_us], candidate_us=[baseline_us], log_ratios=[0.001, -0.001],
        in_worker_log_ratios=[inside_over_outside + each for each in (0.002, -0.002)],
    )


def test_the_mean_is_of_the_judges_and_of_each_process_in_which_eager_was_timed():
    baseline_pool = BaselinePool(3)
    assert (baseline_pool.left, baseline_pool.pooled_baseline) == (0, None), "nobody knows yet how long it takes"
    baseline_pool.add([control(0.03)])
    assert baseline_pool.left == 2 and baseline_pool.pooled_baseline.shift == pytest.approx(0.015)
    baseline_pool.add([])
    baseline_pool.add([control(0.03)])
    found = baseline_pool.pooled_baseline
    assert baseline_pool.left == 0, "one that could not be timed is not asked for for ever"
    assert found.processes == 3 and found.shift == pytest.approx(0.02) and found.deviation == pytest.approx(0.03 / math.sqrt(3))
    baseline_pool.add([control(0.09)])
    assert baseline_pool.pooled_baseline == found, "all rows are over one mean"


def test_where_the_control_lost_its_eager_inside_other_processes_are_asked_all_the_same():
    baseline_pool, lost = BaselinePool(3), control(0.03)
    lost.in_worker_log_ratios = []
    baseline_pool.add([lost])
    assert (baseline_pool.left, baseline_pool.pooled_baseline) == (2, None)
    baseline_pool.add([control(0.03)])
    assert baseline_pool.pooled_baseline.processes == 2 and baseline_pool.pooled_baseline.usual_us == 15.5


def test_a_long_eager_and_a_device_that_wants_none_have_no_mean():
    """From 50 µs on, where the one in the candidate's own process says more."""
    for baseline_pool, timing in ((BaselinePool(3), control(0.01, 60.0)), (BaselinePool(3), control(0.01, 2000.0)), (BaselinePool(0), control(0.01))):
        baseline_pool.add([timing])
        assert (baseline_pool.left, baseline_pool.pooled_baseline) == (0, None)


def test_one_in_which_eager_inside_was_given_up_counts_for_nothing():
    baseline_pool, lost = BaselinePool(2), control(0.03)
    lost.in_worker_log_ratios = lost.in_worker_log_ratios[:1]
    baseline_pool.add([control(0.01)])
    baseline_pool.add([lost])
    assert baseline_pool.pooled_baseline.processes == 2


def pooled(ratio):
    timing = Timing(log_ratios=[ratio + each for each in (1e-4, -1e-4, 0.0)], is_of_its_process=True, pooled_baseline=FOUR)
    timing.candidate_us, timing.baseline_us = [22.0], [15.5]
    timing.speedup = Interval(1.0, 1.0, 1.0)
    return timing


def test_several_workers_of_a_candidate_are_over_the_mean_and_have_what_that_is_off_by():
    found = published([pooled(0.10), pooled(0.11), pooled(0.12)], 0.99, (10,))
    assert found.estimate == pytest.approx(math.exp(0.11 + 0.02))
    between = math.log(found.hi / found.estimate)
    assert between > eager_share(15.5, 0.99, FOUR)
    even = published([pooled(0.10)] * 3, 0.99, (10,))
    assert math.log(even.hi / even.estimate) == pytest.approx(eager_share(15.5, 0.99, FOUR), rel=0.01)
