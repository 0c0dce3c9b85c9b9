"""When there are rounds enough: at a look, and with short calls by a share of the budget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.timing import stopping_rule
from harness.timing.stopping_rule import is_reached
from harness.timing.timings import Timing

NARROW, WIDE = [0.0, 1e-5, -1e-5], [0.0, 0.05, -0.05]


@pytest.fixture
def wanted(settings):
    return replace(settings, looks=(10, 30, 60), budget_s=3.0, half_width=0.001)


def timing_of(log_ratios, time_us, elapsed_s, dropped=0):
    """All rounds took as long."""
    made = len(log_ratios) + dropped
    return Timing(
        candidate_us=[time_us] * 4, baseline_us=[time_us] * 4, log_ratios=list(log_ratios), dropped=dropped,
        read_at_s=[elapsed_s * number / made for number in range(1, made + 1)],
        read_kept=[True] * len(log_ratios) + [False] * dropped,
    )


@pytest.mark.parametrize(("rounds", "elapsed_s", "is_enough"), [
    (9, 0.5, False), (10, 0.5, True), (11, 0.5, False), (11, 2.9, False), (14, 1.42, False), (30, 2.0, True),
    (11, 3.1, True), (3, 3.1, False), (4, 3.1, True),
])
def test_calls_that_are_not_short_end_at_a_look_or_with_the_budget(wanted, rounds, elapsed_s, is_enough):
    assert is_reached(timing_of((4 * rounds * NARROW)[:rounds], 400.0, elapsed_s), wanted, elapsed_s) is is_enough


@pytest.mark.parametrize(("rounds", "elapsed_s", "is_enough"), [
    (10, 0.4, False), (30, 1.25, False), (9, 1.27, False), (10, 1.27, True), (41, 1.27, True), (60, 1.0, True),
    (41, 1.45, False), (30, 1.5, True),
])
def test_short_calls_end_when_a_share_of_the_budget_is_spent_or_at_a_later_look(wanted, rounds, elapsed_s, is_enough):
    assert is_reached(timing_of((4 * rounds * NARROW)[:rounds], 16.0, elapsed_s), wanted, elapsed_s) is is_enough


@pytest.mark.parametrize(("time_us", "asked"), [(16.0, [40]), (49.9, [40]), (50.0, [10, 30]), (400.0, [10, 30])])
def test_whether_enough_is_known_is_asked_at_the_looks_and_of_short_calls_once_between_two(
    wanted, monkeypatch, time_us, asked
):
    """Rounds that end where the interval happens to be narrow would have one that holds the truth less often."""
    seen = []
    monkeypatch.setattr(stopping_rule, "_is_narrow", lambda timing, settings: bool(seen.append(len(timing.log_ratios))))
    for rounds in range(1, 60):
        assert not is_reached(timing_of((30 * WIDE)[:rounds], time_us, 0.0318 * rounds), wanted, 0.0318 * rounds)
    assert seen == asked


@pytest.mark.parametrize(("rounds", "compared"), [(10, 20), (20, 40), (36, 80), (39, 80), (41, 80), (65, None)])
def test_whether_more_rounds_are_worth_it_is_said_of_a_look_that_is_well_ahead(wanted, monkeypatch, rounds, compared):
    """A share that is spent right before a look would end any rounds: the few until then narrow nothing."""
    asked = []
    monkeypatch.setattr(stopping_rule, "narrows_by", lambda in_worker, outside, later, confidence: asked.append(later) or 0.3)
    timing = timing_of((30 * WIDE)[:rounds], 16.0, 1.42)
    timing.in_worker_log_ratios = (30 * [0.02, 0.018, 0.022])[:rounds]  # known, and narrower than is asked for
    timing.in_worker_us = [16.0] * rounds
    monkeypatch.setattr(Timing, "agreeing", property(lambda self: True))
    monkeypatch.setattr(stopping_rule, "width_for", lambda half_width, time_us: 0.0)
    assert not stopping_rule._is_narrow(timing, replace(wanted, looks=(10, 20, 40, 80)))
    assert asked == ([] if compared is None else [compared])


def test_a_call_that_is_short_at_first_is_short_to_the_end(wanted, monkeypatch):
    """Asked at each look of the one kind and at that of the other, there would be more looks than shares."""
    seen, timing = [], Timing()
    monkeypatch.setattr(stopping_rule, "_is_narrow", lambda timing, settings: bool(seen.append(len(timing.log_ratios))))
    for rounds in range(1, 60):
        of_now = timing_of((30 * WIDE)[:rounds], 50.1 if rounds < 25 else 49.9, 0.0318 * rounds)
        of_now.is_short, timing = timing.is_short, of_now
        assert not is_reached(timing, wanted, 0.0318 * rounds)
    assert seen == [10, 30]


def test_a_wide_interval_has_the_whole_budget_and_no_more_than_the_last_look(wanted):
    timing = timing_of((20 * WIDE)[:40], 16.0, 2.9)
    assert not is_reached(timing, wanted, 2.9) and is_reached(timing, wanted, 3.1)
    assert is_reached(timing_of((20 * WIDE)[:50], 16.0, 0.1, dropped=10), wanted, 0.1)


@pytest.mark.parametrize(("rounds", "elapsed_s", "is_enough"), [
    (4, 3.1, False), (9, 11.9, False), (9, 12.1, True), (3, 12.1, False), (10, 3.1, True),
])
def test_what_cannot_be_queued_ahead_has_four_budgets_up_to_the_first_look(wanted, rounds, elapsed_s, is_enough):
    timing = timing_of((20 * WIDE)[:rounds], 30_000.0, elapsed_s)
    timing.launch_hidden = False
    assert is_reached(timing, wanted, elapsed_s) is is_enough


def test_rounds_in_the_heat_count_for_no_share():
    timing = timing_of(NARROW, 16.0, 1.0, dropped=2)
    assert timing.rounds_until(0.5) == 3 and timing.rounds_until(0.21) == 2 and timing.rounds_until(1.1) is None
