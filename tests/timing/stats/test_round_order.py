"""One round of four segments, and the ratio it yields."""

from __future__ import annotations

import math
import random
from statistics import stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.timing.stats import estimate_speedup, log_ratio, order_of_round, trimmed_mean
from harness.timing.stats.round_order import by_halves

TIMES = st.lists(st.floats(0.5, 1e6), min_size=1, max_size=20)
ARM = st.lists(TIMES, min_size=2, max_size=2)


def test_rounds_alternate_so_that_neither_arm_always_goes_first_or_where_b_is_one_always_after_what_is_done_between():
    assert [order_of_round(index) for index in range(3)] == [("AB", "BA"), ("BA", "AB"), ("AB", "BA")]
    assert [order_of_round(index, joined=True) for index in range(3)] == [("ABB", "A"), ("A", "BBA"), ("ABB", "A")]
    assert [order_of_round(index, beside=True) for index in range(3)] == [("AIB", "IA"), ("IAB", "AI"), ("AIB", "IA")]


def test_a_candidate_that_takes_half_the_time_has_a_log_ratio_of_log_two():
    assert log_ratio([[1.0, 1.0], [1.0]], [[2.0], [2.0, 2.0]]) == pytest.approx(math.log(2))


def test_one_slow_launch_in_a_segment_of_ten_is_forgiven():
    assert log_ratio([[1.0] * 9 + [900.0], [1.0]], [[1.0], [1.0]]) == 0


def test_launches_of_two_kinds_count_half_each_whichever_is_one_more():
    fast, slow = [15.0] * 8, [17.0] * 8
    even = log_ratio([[16.0], [16.0]], [fast + slow, fast + slow])
    assert even == pytest.approx((math.log(15) + math.log(17)) / 2 - math.log(16))
    one_more = log_ratio([[16.0], [16.0]], [fast + slow + [17.0], fast + slow + [15.0]])
    assert one_more == pytest.approx(even, abs=1e-2)


FAST = [15.0, 15.2, 15.4, 15.5, 15.6, 15.7, 15.8, 15.9]
SLOW = [17.0, 17.2, 17.4, 17.5, 17.6, 17.7, 17.8, 17.9]


def logs(times_us):
    return [math.log(time_us) for time_us in times_us]


def test_one_slow_launch_in_a_whole_rotation_moves_nothing():
    still = by_halves(logs([*FAST, *SLOW]))
    assert by_halves(logs([*FAST, *SLOW[:-1], 900.0])) == pytest.approx(still, abs=1e-15)


def test_a_launch_between_the_two_kinds_moves_a_whole_rotation_less_than_its_middle_half():
    between = logs([*FAST, *SLOW[1:], 16.4])
    still = logs([*FAST, *SLOW])
    moved = abs(by_halves(between) - by_halves(still))
    assert moved < 0.6 * abs(trimmed_mean(between, 0.25) - trimmed_mean(still, 0.25))


def test_rounds_of_whole_rotations_scatter_less_than_their_middle_halves_would():
    """Launches of 15.6 and 17.6 µs that scatter by 2 % each, and one in eight between the kinds, as on an H200."""
    rng = random.Random(7)

    def segment():
        return [
            math.log((16.5 if rng.random() < 1 / 8 else kind) * (1 + rng.gauss(0, 0.02)))
            for kind in [15.6] * 8 + [17.6] * 8
        ]

    drawn = [segment() for _ in range(2000)]
    assert stdev(map(by_halves, drawn)) < 0.85 * stdev(trimmed_mean(each, 0.25) for each in drawn)


def test_fewer_launches_count_as_their_middle_half_and_then_those_of_the_other_arm_too():
    few, whole = [[1.0, 1.0, 1.0, 9.0]] * 2, [[1.0] * 12 + [9.0] * 4] * 2
    assert log_ratio(few, few) == log_ratio(few, whole) == log_ratio(whole, few) == 0
    assert log_ratio([[1.0] * 16] * 2, whole) == pytest.approx(math.log(9) / 4)


@pytest.mark.parametrize("launches", range(1, 21))
def test_one_function_against_itself_is_one_in_the_mean_however_many_launches_are_made(launches):
    """One launch in ten takes 1.3 times as long, as on a CPU with another load."""
    rng = random.Random(launches)

    def arm():
        return [[(1.3 if rng.random() < 0.1 else 1.0) * math.exp(rng.gauss(0, 0.01)) for _ in range(launches)] for _ in "12"]

    drawn = [log_ratio(arm(), arm()) for _ in range(2000)]
    assert abs(sum(drawn) / len(drawn)) < 5 * stdev(drawn) / math.sqrt(len(drawn))


@given(ARM, ARM)
def test_exchanging_the_arms_changes_the_sign_only(a, b):
    assert log_ratio(a, b) == -log_ratio(b, a)


@given(ARM, ARM, st.floats(0.1, 10))
def test_a_clock_that_runs_slow_for_both_arms_does_not_show(a, b, factor):
    slowed = [[[time * factor for time in segment] for segment in arm] for arm in (a, b)]
    assert log_ratio(*slowed) == pytest.approx(log_ratio(a, b), abs=1e-9)


@given(st.sampled_from([0, 1]), st.booleans(), st.floats(-0.1, 0.1), st.floats(0.2, 5))
def test_a_drift_that_is_linear_over_the_round_cancels(index, beside, drift, speedup):
    arms = {"A": [], "B": [], "I": []}
    for position, arm in enumerate("".join(order_of_round(index, beside=beside))):
        arms[arm].append([100 * (speedup if arm != "A" else 1) * math.exp(drift * position)])
    for baseline in filter(None, (arms["B"], arms["I"])):
        assert log_ratio(arms["A"], baseline) == pytest.approx(math.log(speedup), abs=1e-9)


@pytest.mark.parametrize("arm", [[], [[1.0]] * 3, [[1.0], []], [[1.0], [0.0]], [[1.0], [-1.0]],
                                 [[1.0], [math.nan]], [[1.0], [math.inf]]])
def test_a_round_that_is_no_round_is_refused(arm):
    with pytest.raises(ValueError):
        log_ratio(arm, [[1.0], [1.0]])


def test_the_speedup_is_the_ratio_and_not_its_log():
    interval = estimate_speedup([math.log(2) + noise for noise in (-0.01, 0.0, 0.01, 0.0, 0.005, -0.005)])
    assert interval.lo < interval.estimate < interval.hi
    assert interval.estimate == pytest.approx(2)


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=80))
def test_the_speedup_of_a_over_b_is_one_over_that_of_b_over_a(log_ratios):
    forward, backward = estimate_speedup(log_ratios), estimate_speedup([-value for value in log_ratios])
    assert forward.estimate == pytest.approx(1 / backward.estimate)
    if forward.hi < 1e100:
        assert forward.hi == pytest.approx(1 / backward.lo)
