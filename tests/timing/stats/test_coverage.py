"""Simulated coverage: how often the interval holds the truth when some rounds are wildly off.

The noise is normal with one round in ten drawn ten times as wide, on either side, as interrupts and clock
steps are (either arm may be hit). The seed is fixed, so these tests never flicker. In 40 000 trials a single
99 % interval covered 98.6, 98.8 and 98.9 % at 10, 20 and 40 rounds, a little short as Student's t is known to
be here; the whole procedure of looks, whose shares add up to 1 %, covered 99.4 to 99.8 %.
"""

from __future__ import annotations

import random

import pytest

from harness.timing.stats import check_of, confidence_at, estimate_log_ratio, next_check, should_stop, tukey_mclaughlin

TRIALS = 3000
TRUTH = 0.25


def contaminated(rng: random.Random, n: int, sigma: float = 1.0) -> list[float]:
    return [TRUTH + sigma * rng.gauss(0, 10 if rng.random() < 0.1 else 1) for _ in range(n)]


@pytest.mark.parametrize("n", [8, 10, 20, 40])
@pytest.mark.parametrize("confidence", [0.99, 0.9975])
def test_a_single_interval_misses_the_truth_at_most_half_as_often_again_as_it_says(n, confidence):
    rng = random.Random(20240 + n)
    missed = 0
    for _ in range(TRIALS):
        interval = tukey_mclaughlin(contaminated(rng, n), confidence)
        missed += not interval.lo <= TRUTH <= interval.hi
    allowed = 1.5 * (1 - confidence) * TRIALS
    assert missed <= allowed + 2 * allowed**0.5


@pytest.mark.parametrize("n", [10, 20, 40])
def test_the_interval_is_several_times_narrower_than_the_plain_means(n):
    rng = random.Random(7 + n)
    samples = [contaminated(rng, n) for _ in range(300)]
    trimmed = sum(tukey_mclaughlin(sample).half_width for sample in samples)
    plain = sum(tukey_mclaughlin(sample, trim=0.0).half_width for sample in samples)
    assert trimmed < 0.75 * plain


@pytest.mark.parametrize("interim_checks", [(10, 20, 40, 80), (10, 20, 30, 60), (8, 12, 16)])
@pytest.mark.parametrize("half_width", [0.5, 1.0, 2.0])
def test_stopping_at_the_first_look_that_is_narrow_enough_keeps_the_confidence(half_width, interim_checks):
    confidence, rng, missed = 0.99, random.Random(11), 0
    for _ in range(TRIALS):
        ratios: list[float] = []
        while (rounds := next_check(len(ratios), interim_checks)) is not None:
            ratios += contaminated(rng, rounds - len(ratios))
            interval = estimate_log_ratio(ratios, confidence_at(check_of(rounds, interim_checks), interim_checks, confidence))
            if should_stop(interval, half_width):
                break
        missed += not interval.lo <= TRUTH <= interval.hi
    assert missed <= (1 - confidence) * TRIALS
