"""When there are rounds enough: at a look, and with short calls by a share of the budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.referee.estimating import enough
from harness.referee.timed import Timing

NARROW, WIDE = [0.0, 1e-5, -1e-5], [0.0, 0.05, -0.05]


@pytest.fixture
def wanted(settings):
    return replace(settings, looks=(10, 30, 60), budget_s=3.0, half_width=0.001)


def timing_of(log_ratios, time_us, dropped=0):
    return Timing(
        candidate_us=[time_us] * 4, baseline_us=[time_us] * 4, log_ratios=list(log_ratios), dropped=dropped,
    )


@pytest.mark.parametrize(("rounds", "elapsed_s", "is_enough"), [
    (9, 0.5, False), (10, 0.5, True), (11, 0.5, False), (11, 2.9, False), (30, 2.0, True), (11, 3.1, True),
    (3, 3.1, False), (4, 3.1, True),
])
def test_calls_that_are_not_short_end_at_a_look_or_with_the_budget(wanted, rounds, elapsed_s, is_enough):
    assert enough(timing_of((4 * rounds * NARROW)[:rounds], 400.0), wanted, elapsed_s) is is_enough


@pytest.mark.parametrize(("rounds", "elapsed_s", "is_enough"), [
    (10, 0.4, False), (30, 1.2, False), (9, 1.3, False), (10, 1.3, True), (41, 1.3, True), (60, 1.0, True),
])
def test_short_calls_end_when_a_share_of_the_budget_is_spent(wanted, rounds, elapsed_s, is_enough):
    assert enough(timing_of((4 * rounds * NARROW)[:rounds], 16.0), wanted, elapsed_s) is is_enough


@pytest.mark.parametrize(("first", "later", "is_enough"), [(NARROW, WIDE, True), (WIDE, NARROW, False)])
def test_what_short_calls_gave_after_the_last_look_has_no_part_in_it(wanted, first, later, is_enough):
    """Rounds that end where the interval happens to be narrow would have one that holds the truth less often."""
    ratios = (30 * first)[:30] + (30 * later)[:12]
    assert enough(timing_of(ratios, 16.0), wanted, 1.4) is is_enough


def test_a_wide_interval_has_the_whole_budget_and_no_more_than_the_last_look(wanted):
    timing = timing_of((20 * WIDE)[:40], 16.0)
    assert not enough(timing, wanted, 2.9) and enough(timing, wanted, 3.1)
    assert enough(timing_of((20 * WIDE)[:50], 16.0, dropped=10), wanted, 0.1)
