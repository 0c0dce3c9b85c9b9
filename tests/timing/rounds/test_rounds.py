"""Rounds on a scripted device: known times in, known ratios out, and every way of stopping."""

from __future__ import annotations

import math

import pytest

from harness.device.identity import Violations
from harness.timing.stats import estimate_speedup
from harness.timing.timings import Timing


def test_twice_as_fast_is_a_speedup_of_two(rounds_of):
    timing, *_ = rounds_of(1000.0, 2000.0)
    assert timing.speedup.estimate == pytest.approx(2)
    assert timing.time_us == 1000
    assert timing.baseline_time_us == 2000
    assert timing.word == "FASTER"


@pytest.mark.parametrize(("a_us", "word"), [(2000.0, "SAME"), (2200.0, "SLOWER"), (1500.0, "FASTER")])
def test_the_word_follows_the_ratio(rounds_of, a_us, word):
    assert rounds_of(a_us, 2000.0)[0].word == word


def test_a_ratio_too_noisy_to_call_is_unsure(rounds_of):
    noise = [1000.0, 4000.0, 2000.0, 900.0, 3000.0]
    timing, *_ = rounds_of(lambda segment: noise[segment % 5])
    assert timing.word == "UNSURE"
    assert timing.speedup.lo < 1 < timing.speedup.hi


def test_each_reading_has_its_time_and_whether_its_round_was_kept(rounds_of):
    timing, *_ = rounds_of(1000.0, throttle=lambda index: "hw_thermal" if index % 4 < 2 else "")
    assert len(timing.read_at_s) == len(timing.read_kept) == len(timing.telemetry)
    assert timing.violations == Violations(5_000_000 * len(timing.telemetry), None)
    assert timing.read_at_s == sorted(timing.read_at_s) and timing.read_at_s[0] >= 0
    assert timing.read_kept.count(False) == timing.dropped > 0


def test_a_steady_ratio_stops_at_the_first_look(rounds_of):
    timing, *_ = rounds_of(1000.0)
    assert len(timing.log_ratios) == 5


def test_a_noisy_one_goes_on_to_the_last_look_and_no_further(rounds_of):
    noise = [1000.0, 1500.0, 1200.0]  # by the number of the segment: looks come when chance says
    timing, *_ = rounds_of(lambda segment: noise[segment % 3])
    assert len(timing.log_ratios) == 20


def test_a_wider_half_width_stops_earlier(rounds_of):
    noise = [1000.0, 1010.0, 1005.0]  # by the number of the segment: looks come when chance says
    loose, *_ = rounds_of(lambda segment: noise[segment % 3], half_width=0.5)
    assert len(loose.log_ratios) == 5


def test_a_spent_budget_ends_the_rounds_after_the_fewest_that_mean_anything(rounds_of):
    noise = [1000.0, 1500.0, 1200.0]  # by the number of the segment: looks come when chance says
    timing, *_ = rounds_of(lambda segment: noise[segment % 3], budget_s=0.0)
    assert len(timing.log_ratios) == 4
    assert timing.speedup is not None


@pytest.mark.parametrize(("kind", "times_us", "ends_s", "rounds"), [
    ("cuda", [1000.0, 1500.0, 1200.0], math.inf, 5), ("cuda", [1000.0, 1001.0], math.inf, 4),
    ("cuda", [1000.0, 1500.0, 1200.0], 0.0, 4), ("cpu", [1000.0, 1500.0, 1200.0], math.inf, 4),
])
def test_few_rounds_that_would_be_in_doubt_go_on_to_the_first_interim_check(rounds_of, kind, times_us, ends_s, rounds):
    timing, *_ = rounds_of(lambda segment: times_us[segment % len(times_us)], kind=kind, budget_s=0.0, ends_s=ends_s)
    assert len(timing.log_ratios) == rounds


def test_the_interval_is_that_of_the_look_at_which_it_stopped(rounds_of):
    noise = [1000.0, 1500.0, 1200.0]  # by the number of the segment: looks come when chance says
    timing, *_ = rounds_of(lambda segment: noise[segment % 3])
    assert timing.speedup == estimate_speedup(timing.log_ratios, 1 - 0.01 / 3)
    assert timing.confidence == 0.99


@pytest.mark.parametrize(
    ("b_us", "even", "odd"),
    [
        (2000.0, [("A", 5), ("B", 5), ("A", 5)], [("A", 5), ("B", 5), ("A", 5)]),
        (200.0, [("A", 5), ("B", 17), ("B", 17), ("A", 5)], [("B", 17), ("A", 5), ("A", 5), ("B", 17)]),
    ],
    ids=["BB is one", "too long for one"],
)
def test_rounds_go_abba_with_one_segment_for_bb_and_where_that_is_too_long_abba_and_baab_in_turn(
    rounds_of, b_us, even, odd
):
    timing, log, *_ = rounds_of(1000.0, b_us, segment_ms=4.0)
    arms = [(entry[0], entry[1]) for entry in log if entry[0] in ("A", "B")]
    expected = 2 * (even + odd) + even  # five rounds
    assert any(arms[at:at + len(expected)] == expected for at in range(len(arms)))
    assert timing.input_sets == max(count for _, count in expected)
    assert timing.timer == "scripted"  # as the worker says
    assert len(timing.candidate_us) == len(timing.log_ratios) * 2 * (even[0][1] - 1)
    of_baseline = sum(count - 1 for arm, count in odd if arm == "B")
    assert len(timing.baseline_us) == len(timing.log_ratios) * of_baseline


@pytest.mark.parametrize("reason", ["hw_thermal", "power_cap+sw_thermal", "hw_slowdown"])
def test_rounds_in_the_heat_are_dropped_for_both_arms(rounds_of, reason):
    timing, *_ = rounds_of(1000.0, throttle=lambda index: reason if index % 4 < 2 else "")
    assert timing.dropped > 0
    assert len(timing.log_ratios) + timing.dropped == len(timing.telemetry)
    assert timing.speedup.estimate == pytest.approx(2)


def test_the_times_of_dropped_rounds_are_not_reported_either(rounds_of):
    def hot_then_cool(segment):
        return 9000.0 if segment < 6 else 1000.0

    timing, *_ = rounds_of(hot_then_cool, throttle=lambda index: "hw_thermal" if index < 8 else "", segment_ms=1)
    assert timing.dropped > 0
    assert set(timing.candidate_us) == {1000.0}


def test_a_power_cap_drops_nothing(rounds_of):
    assert rounds_of(1000.0, throttle=lambda index: "power_cap")[0].dropped == 0


def test_nothing_but_heat_ends_at_the_last_look_without_an_estimate(rounds_of):
    timing, *_ = rounds_of(1000.0, throttle=lambda index: "hw_thermal")
    assert timing.log_ratios == []
    assert timing.dropped == 20
    assert timing.speedup is None
    assert timing.word is None


@pytest.mark.parametrize(("time_us", "calls"), [(1000.0, 5), (3000.0, 3), (30_000.0, 1)])
def test_end_to_end_time_is_the_median_of_single_calls_apart_from_the_rounds(rounds_of, time_us, calls):
    timing, log, *_ = rounds_of(time_us)
    assert timing.end_to_end_us == 77
    made = [entry[1] for entry in log if entry[0] == "A"]
    assert made[-calls:] == [1] * calls and made[-calls - 1] > 1


def test_what_the_wall_clock_saw_beyond_the_reported_time_is_kept(rounds_of):
    timing, *_ = rounds_of(1000.0)
    assert timing.wall_overhead_us == pytest.approx(40)
    assert Timing().wall_overhead_us is None
