"""What the judge's own clock leaves open about a time, and what a row pays for it."""

from __future__ import annotations

import math

import pytest
from audited_timings import timing_of

from harness.model.device_limits import CPU, CUDA
from harness.timing.control import Control
from harness.timing.estimate import count_unvouched, estimate_briefly
from harness.timing.timings import Timing


def control_of(overhead_us=40.0, baseline_us=1000.0, **fields):
    return Control(overhead_us, 340.0, baseline_us, typical_overhead_us=overhead_us, **fields)


@pytest.mark.parametrize(("time_us", "beyond_us", "unvouched_us"), [
    (1000.0, 0.0, 0.0), (1000.0, 20.0, 0.0), (1000.0, 24.0, 24.0), (1000.0, -30.0, 0.0), (100.0, 3.0, 0.0), (100.0, 3.5, 3.5), (20.0, 20.0, 20.0),
])
def test_from_two_per_cent_or_3_us_on_all_that_a_call_may_take_longer_is_unseen(time_us, beyond_us, unvouched_us):
    found = control_of().unvouched_us(timing_of(time_us, overhead_us=40.0 + beyond_us), CUDA)
    assert found == pytest.approx(unvouched_us)


@pytest.mark.parametrize(("time_us", "beyond_us", "unvouched_us"), [
    (1000.0, 50.0, 0.0), (1000.0, 60.0, 60.0), (10_000.0, 500.0, 0.0), (10_000.0, 800.0, 800.0),
])
def test_on_a_cpu_it_is_from_five_per_cent_or_50_us_on(time_us, beyond_us, unvouched_us):
    assert control_of().unvouched_us(timing_of(time_us, overhead_us=40.0 + beyond_us), CPU) == pytest.approx(unvouched_us)


def test_another_baseline_around_which_the_steps_took_less_shows_what_they_may_take():
    assert control_of(others_typical_us=(30.0,)).unvouched_us(timing_of(overhead_us=55.0), CUDA) == pytest.approx(25.0)
    assert control_of().unvouched_us(timing_of(overhead_us=55.0), CUDA) == 0.0


def test_the_steps_of_a_queue_that_was_not_gated_are_held_against_the_longest_of_the_controls():
    synchronised = control_of(synchronised_overhead_us=400.0)
    assert synchronised.unvouched_us(timing_of(overhead_us=415.0, hidden=False), CUDA) == 0.0
    assert synchronised.unvouched_us(timing_of(overhead_us=425.0, hidden=False), CUDA) == pytest.approx(25.0)
    assert control_of().unvouched_us(timing_of(overhead_us=365.0, hidden=False), CUDA) == pytest.approx(25.0)


def test_what_either_is_not_known_to_counts_as_unseen():
    sure = control_of().unvouched_us(timing_of(overhead_us=65.0), CUDA)
    assert control_of(overhead_reach_us=7.0).unvouched_us(timing_of(overhead_us=65.0), CUDA) == pytest.approx(sure + 7.0)
    scattered = timing_of(overhead_us=65.0)
    scattered.window_less_time_us = [55.0, 75.0] * 10
    assert 0 < scattered.overhead_reach_us < 20.0
    assert control_of().unvouched_us(scattered, CUDA) == pytest.approx(sure + scattered.overhead_reach_us)
    assert timing_of().overhead_reach_us == Timing().overhead_reach_us == 0.0


@pytest.mark.parametrize("share", [0.5, 0.7, 0.8, 0.9])
def test_a_lie_about_some_of_the_launches_counts_as_much_as_it_gains(share):
    """A mean of all would show 1/2 to 9/10 of it, and a median all or nothing."""
    lies = round(20 * share)
    timing = timing_of()
    timing.candidate_us = [600.0] * lies + [1000.0] * (20 - lies)
    timing.window_less_time_us = [440.0] * lies + [40.0] * (20 - lies)
    assert timing.typical_overhead_us == pytest.approx(40.0 + 1000.0 - timing.time_us)


@pytest.mark.parametrize("missed", [range(3), range(17, 20)])
def test_a_launch_that_the_judge_missed_counts_with_the_time_that_it_says(missed):
    timing = timing_of()
    timing.candidate_us = [400.0 if launch in missed else 1000.0 for launch in range(20)]
    timing.window_less_time_us = [None if launch in missed else 40.0 for launch in range(20)]
    assert timing.typical_overhead_us == pytest.approx(40.0 + 1000.0 - timing.time_us)
    assert Timing().typical_overhead_us is None


def test_what_passes_before_the_window_is_opened_is_in_neither_but_where_queues_are_not_gated():
    timing = timing_of(overhead_us=40.0)
    timing.wall_less_time_us = [240.0] * 20
    assert timing.typical_overhead_us == pytest.approx(40.0)
    timing.launch_hidden = False
    assert timing.typical_overhead_us == pytest.approx(240.0)


def test_a_clock_that_nothing_is_known_of_has_nothing_unseen():
    assert control_of().unvouched_us(Timing(candidate_us=[1.0]), CUDA) == 0.0
    assert Control(None, None, 1000.0).unvouched_us(timing_of(), CUDA) == 0.0


def test_the_control_hands_on_what_its_own_steps_took():
    found = Control.of(timing_of(overhead_us=43.0))
    assert found.typical_overhead_us == pytest.approx(43.0) and found.overhead_reach_us == 0.0
    both = found.and_baseline(timing_of(overhead_us=41.0))
    assert both.others_typical_us == both.renewed(timing_of(overhead_us=45.0)).others_typical_us == (pytest.approx(41.0),)


@pytest.fixture
def estimated():
    timing = timing_of(500.0)
    timing.log_ratios = [math.log(2.0)] * 4
    estimate_briefly(timing, 0.99)
    return timing


def test_the_low_end_of_the_speedup_is_that_of_a_call_that_takes_as_much_longer(estimated):
    before = estimated.speedup
    count_unvouched(estimated, 125.0, 0.99)
    assert estimated.unvouched_us == 125.0 and estimated.times_unvouched == 1.25
    assert estimated.speedup.lo == pytest.approx(before.lo / 1.25)
    assert (estimated.speedup.estimate, estimated.speedup.hi) == (before.estimate, before.hi)
    assert any("unvouched_us" in note for note in estimated.notes)


def test_the_word_goes_by_that_low_end(estimated):
    estimated.of_this_process = estimated.speedup = type(estimated.speedup)(1.2, 1.15, 1.25)
    count_unvouched(estimated, 100.0, 0.99)
    assert estimated.word == "UNSURE" and estimated.speedup.lo < 1


def test_nothing_unseen_changes_nothing(estimated):
    before = estimated.speedup
    count_unvouched(estimated, 0.0, 0.99)
    assert estimated.speedup == before and not estimated.notes
