"""Log-ratios of many rounds, without what a launch's place in the rotation adds to it."""

from __future__ import annotations

import math
import random
from statistics import fmean, pstdev

import pytest

from harness.protocol.rotation import PERIOD, PLACES as OF_THE_KERNELS, steps_before
from harness.timing.stats import log_ratio, log_ratios, rotation_fit

ADDED = (-0.07, 0.01, 0.06, 0.0)  # what H200s add to calls of 16 µs, about


def pairs(seed, slots=0.0, both=0.0):
    """What each place adds in each of 16 slots: what the slots add by themselves, and the two together."""
    chance = random.Random(seed)
    of_slot = [chance.gauss(0, slots) for _ in range(16)]
    return [[each + chance.gauss(0, both) for each in of_slot] for _ in range(4)]


def arm(
    chance, *, time_us=16.0, kernels=3, added=ADDED, scatter=0.02, rounds=20, segments=2, launches=16, pairs=pairs(0)
):
    """Rounds of an arm whose calls have so many kernels, each segment beginning at a place that chance draws."""
    made = []
    for _ in range(rounds * segments):
        place, times = chance.randrange(4), []
        for index in range(1, launches + 1):
            place += steps_before(index)
            slow = 0.5 if chance.random() < 0.02 else 0.0
            of_pair = pairs[place % 4][(index - 1) % 16]
            times.append(time_us * math.exp(added[place % 4] + of_pair + chance.gauss(0, scatter) + slow))
            place += kernels
        made.append(times)
    return [made[at:at + segments] for at in range(0, len(made), segments)]


@pytest.mark.parametrize(("kernels", "others"), [(0, 1), (1, 1), (2, 3), (3, 2)])
def test_rounds_scatter_less_without_the_places_and_say_the_same(kernels, others):
    chance = random.Random(kernels)
    new, old = [], []
    for _ in range(12):
        a, b = arm(chance, kernels=kernels), arm(chance, kernels=others, time_us=32.0, segments=1 + kernels % 2)
        new.append(log_ratios(a, b))
        old.append([log_ratio(*each) for each in zip(a, b)])
    assert fmean(map(pstdev, new)) < 0.96 * fmean(map(pstdev, old))
    assert fmean(map(fmean, new)) == pytest.approx(math.log(2), abs=0.002)


def test_the_rotation_is_the_one_that_is_launched():
    assert (rotation_fit.PLACES, rotation_fit.ROTATION) == (OF_THE_KERNELS, PERIOD)


@pytest.mark.parametrize("unlike", [
    {"added": (0.0,) * 4}, {"launches": 12}, {"launches": 32}, {"rounds": 7}, {"added": (0.0,) * 4, "scatter": 0.0},
])
def test_where_either_arm_shows_no_places_each_round_counts_by_itself(unlike):
    chance = random.Random(5)
    shape = {"rounds": unlike.get("rounds", 20)}
    a, b = arm(chance, **{**shape, **unlike}), arm(chance, **shape)
    for pair in ((a, b), (b, a)):
        assert log_ratios(*pair) == [log_ratio(*each) for each in zip(*pair)]


def test_places_are_hardly_ever_seen_where_there_are_none():
    chance, seen = random.Random(6), 0
    for _ in range(200):
        a, b = (arm(chance, added=(0.0,) * 4, rounds=8, pairs=pairs(7, slots=0.016)) for _ in "ab")
        seen += log_ratios(a, b) != [log_ratio(*each) for each in zip(a, b)]
    assert seen == 0


@pytest.mark.parametrize(("kernels", "others", "times", "left"), [
    (3, 3, (16.0, 16.0), 0.72), (3, 2, (16.0, 16.0), 0.86), (3, 3, (16.0, 32.0), 0.86),  # of one arm alone less is taken off
])
def test_slots_and_what_places_add_in_them_scatter_rounds_less_and_move_nothing(kernels, others, times, left):
    chance, new, old = random.Random(9), [], []
    for seed in range(12):
        added = pairs(seed, slots=0.016, both=0.02)
        a = arm(chance, kernels=kernels, time_us=times[0], pairs=added, rounds=32)
        b = arm(chance, kernels=others, time_us=times[1], pairs=added, rounds=32)
        new.append(log_ratios(a, b))
        old.append([log_ratio(*each) for each in zip(a, b)])
    assert fmean(map(pstdev, new)) < left * fmean(map(pstdev, old))
    assert fmean(map(fmean, new)) == pytest.approx(math.log(times[1] / times[0]), abs=0.002)


def test_a_slow_launch_in_each_place_moves_nothing_much():
    chance = random.Random(7)
    a, b = arm(chance), arm(chance)
    still = log_ratios(a, b)
    for segments in a:
        for times in segments:
            times[chance.randrange(16)] *= 40
    assert fmean(log_ratios(a, b)) == pytest.approx(fmean(still), abs=0.006)


def test_as_many_rounds_of_either_arm_are_demanded():
    chance = random.Random(8)
    with pytest.raises(ValueError):
        log_ratios(arm(chance), arm(chance, rounds=19))
