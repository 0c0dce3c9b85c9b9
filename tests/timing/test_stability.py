"""Times that scatter, or are of two kinds: whether a candidate's speedup is known, on a GPU."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.launch.failures import Failed
from harness.model.device_limits import CPU, CUDA, limits_of
from harness.model.verdict import ReasonCode, Status
from harness.timing.stability import check_evenness, check_spread
from harness.timing.stats import Interval
from harness.timing.timings import Timing

TIMING = Timing(candidate_us=[1000.0] * 20, baseline_us=[1000.0] * 20)


@pytest.mark.parametrize(
    ("lo", "hi", "kind", "half_width", "is_known"),
    [
        (1.91, 2.09, "cuda", 0.001, True), (1.89, 2.11, "cuda", 0.001, False), (0.90, 3.10, "cuda", 0.001, False),
        (1.85, 2.15, "cuda", 0.1, True), (1.75, 2.25, "cuda", 0.1, False), (0.90, 3.10, "cpu", 0.001, True),
    ],
)
def test_a_speedup_that_is_hardly_known_is_doubted_on_a_gpu(lo, hi, kind, half_width, is_known):
    timing = replace(TIMING, scattered=Interval(2.0, lo, hi))
    if is_known:
        check_spread(timing, limits_of(kind), half_width)
        return
    with pytest.raises(Failed) as caught:
        check_spread(timing, limits_of(kind), half_width)
    verdict = caught.value.verdict
    assert (verdict.status, verdict.reason_code) == (Status.UNSURE, ReasonCode.NOISY)
    assert f"between {lo:.3g} and {hi:.3g}" in verdict.reason


@pytest.mark.parametrize(("rounds", "known_to"), [(4, 0.114), (8, 0.055), (10, 0.05), (40, 0.05)])
def test_few_rounds_have_a_wider_interval_of_the_same_scatter(rounds, known_to):
    for half_width, is_known in ((0.99 * known_to, True), (1.05 * known_to, False)):
        speedup = Interval(1.0, 1 - half_width, 1 + half_width)
        timing = replace(TIMING, scattered=speedup, log_ratios=[0.0] * rounds)
        if is_known:
            check_spread(timing, CUDA, 0.001)
            continue
        with pytest.raises(Failed):
            check_spread(timing, CUDA, 0.001)


def test_a_call_that_could_not_be_queued_ahead_is_doubted_and_not_accused():
    timing = replace(TIMING, scattered=Interval(2.0, 1.8, 2.2))
    said = {}
    for hidden in (True, False):
        with pytest.raises(Failed) as caught:
            check_spread(replace(timing, launch_hidden=hidden), CUDA, 0.001)
        said[hidden] = caught.value.verdict.reason
    assert "it works outside its timed windows" in said[True] and "works outside" not in said[False]


def test_without_a_speedup_there_is_nothing_to_be_known():
    check_spread(TIMING, CUDA, 0.001)


def with_segments(*segments):
    """A timing of rounds with two of the `segments` of the candidate each."""
    pairs = [list(pair) for pair in zip(segments[::2], segments[1::2])]
    return Timing(candidate_us=[each for segment in segments for each in segment], segments=pairs)


def verdict_on_evenness(timing):
    check_evenness(timing, CPU)
    try:
        check_evenness(timing, CUDA)
    except Failed as failed:
        return failed.verdict
    return None


@pytest.mark.parametrize(("usual_us", "fast_us", "fast", "segments", "is_even"), [
    (100.0, 89.0, 0, 20, True), (100.0, 89.0, 2, 4, True), (100.0, 89.0, 3, 4, False), (100.0, 91.0, 3, 4, True),
    (100.0, 89.0, 3, 20, True), (100.0, 89.0, 8, 20, False),
    (16.0, 12.9, 8, 20, False), (16.0, 13.1, 8, 20, True), (5.0, 2.4, 8, 20, False), (5.0, 2.6, 8, 20, True),
])
def test_a_few_launches_that_take_much_less_than_most_are_a_doubt_on_a_gpu(usual_us, fast_us, fast, segments, is_even):
    made = [[usual_us] * 16 for _ in range(segments)]
    for index in range(fast):
        made[index % segments][index] = fast_us
    verdict = verdict_on_evenness(with_segments(*made))
    if is_even:
        assert verdict is None
        return
    assert (verdict.status, verdict.reason_code) == (Status.UNSURE, ReasonCode.NOISY)
    assert f"{fast} of {16 * segments}" in verdict.reason


def test_a_steady_habit_of_beginning_some_early_is_seen_without_a_look():
    """Every fifth launch gains 48 % of 100 µs, whatever is looked at: 10 % by logs, and no look tells one from the other."""
    made = [[52.0 if index % 5 == 0 else 100.0 for index in range(16)] for _ in range(20)]
    assert verdict_on_evenness(with_segments(*made)).status is Status.UNSURE


def test_where_a_segment_is_one_launch_it_is_held_against_all():
    """Of calls of 3 ms and more a segment has no others beside it."""
    made = [[3100.0 if index % 5 else 1700.0] for index in range(40)]
    assert verdict_on_evenness(with_segments(*made)).status is Status.UNSURE


def test_launches_below_half_are_a_doubt_in_a_segment_of_their_own_too():
    made = [[100.0] * 16] * 18 + [[45.0] * 16] * 2
    assert verdict_on_evenness(with_segments(*made)).status is Status.UNSURE


@pytest.mark.parametrize("launches", [1, 2, 4, 16])
@pytest.mark.parametrize("call_us", [5.0, 16.0, 50.0, 300.0, 3000.0])
def test_launches_that_scatter_are_no_doubt_for_that(call_us, launches):
    """By 4 % each, and of two kinds 2 µs apart: as calls of 16 µs do on an H200."""
    rng = random.Random(f"{call_us} {launches}")
    for _ in range(10):
        made = [[(call_us + rng.choice((0, 2))) * (1 + rng.gauss(0, 0.04)) for _ in range(launches)] for _ in range(40)]
        assert verdict_on_evenness(with_segments(*made)) is None


def test_a_clock_that_falls_from_segment_to_segment_is_no_doubt():
    assert verdict_on_evenness(with_segments(*([100.0 + 2 * index] * 16 for index in range(20)))) is None


def test_two_kinds_of_launch_as_on_an_h200_are_no_doubt():
    assert verdict_on_evenness(with_segments(*([15.0, 17.0] * 8 for _ in range(20)))) is None


def test_one_slow_launch_of_two_makes_no_fast_one_of_the_other():
    made = [[1000.0, 1000.0]] * 10 + [[1000.0, 1300.0]] * 10
    assert verdict_on_evenness(with_segments(*made)) is None


def test_without_a_round_there_is_nothing_uneven():
    made = with_segments([100.0] * 4, [100.0] * 4)
    made.segments = []
    assert verdict_on_evenness(made) is None
