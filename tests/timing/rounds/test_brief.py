"""A candidate that takes far longer than the baseline is timed in a few calls, each of them verified, and called SLOWER."""

from __future__ import annotations

import math
import time

import pytest

from harness.timing.estimate import span_usual_baseline


def calls_of(log) -> int:
    return sum(count for kind, count, *_ in (each for each in log if each[0] not in ("synchronize", "verify"))
               if kind != "B")


def test_a_call_of_seconds_beside_one_of_a_millisecond_is_slower_after_a_few(rounds_of):
    timing, log, *_ = rounds_of(3e6, 1000.0)
    assert timing.is_brief and timing.word == "SLOWER"
    assert timing.speedup.estimate == pytest.approx(1 / 3000)
    assert timing.time_us == 3e6 and timing.candidate_us == [3e6] * 3
    assert calls_of(log) == 2 + 3 + 1  # the first look at both, the rounds, and one by itself
    assert not any(each[0] in ("early", "inspected", "completed", "valued") for each in log)
    assert "about 3,000 times as long as eager, so 3 calls were timed" in timing.notes[0]


@pytest.mark.parametrize("slow_for", [1, 2, 3])
def test_who_is_slow_in_the_first_calls_alone_has_all_rounds_and_looks(rounds_of, slow_for):
    """Else one slow call would buy three rounds in which nobody looks."""
    timing, log, *_ = rounds_of(lambda segment: 3e6 if segment < slow_for else 500.0, 1000.0)
    assert not timing.is_brief and len(timing.log_ratios) >= 4
    assert 3e6 not in timing.candidate_us and timing.speedup.estimate == pytest.approx(2.0, rel=0.01)
    assert {each[0] for each in log} & {"early", "inspected", "completed", "valued"}


def test_every_call_that_is_timed_is_verified(rounds_of):
    seen = []
    rounds_of(3e6, 1000.0, verify=lambda sets, made, only=None: seen.append(list(range(len(sets)) if only is None else only)))
    assert all(0 in each for each in seen[1:]) and len(seen) == 1 + 3 + 1


@pytest.mark.parametrize(("a_us", "b_us", "is_brief"), [
    (90_000.0, 1000.0, False),   # not a hundred times as long
    (20_000.0, 100.0, False),    # a hundred times, and all its rounds are over in a second
    (200_000.0, 1000.0, True),
    (30e6, 2e6, False),          # a baseline that is long itself
])
def test_what_is_not_far_slower_or_is_quick_has_all_its_rounds(rounds_of, a_us, b_us, is_brief):
    timing, *_ = rounds_of(a_us, b_us, budget_s=1.0)
    assert timing.is_brief is is_brief
    assert (len(timing.log_ratios) == 3) is is_brief


@pytest.mark.parametrize(("seconds_left", "is_brief"), [(10.0, True), (3600.0, False)])
def test_ten_times_as_long_is_enough_where_the_row_has_no_time_for_all_rounds(
    scripted, small_regions, reference_of, settings, seconds_left, is_brief
):
    timing = _rounds(scripted, reference_of, settings, 900_000.0, 50_000.0, ends_s=time.monotonic() + seconds_left)
    assert timing.is_brief is is_brief and timing.word == "SLOWER"


def test_no_control_is_so_far_off_itself_that_a_factor_of_thousands_means_nothing(
    scripted, small_regions, reference_of, settings
):
    timing = _rounds(scripted, reference_of, settings, 3e6, 1000.0, control_apart=math.inf)
    assert timing.is_brief and timing.word == "SLOWER"
    timing = _rounds(scripted, reference_of, settings, 2000.0, 1000.0, control_apart=math.inf)
    assert not timing.is_brief and timing.word == "UNSURE"


def test_a_row_whose_time_is_over_ends_with_the_rounds_in_which_each_look_comes(
    scripted, small_regions, reference_of, settings
):
    timing = _rounds(scripted, reference_of, settings, 2200.0, 2000.0, ends_s=time.monotonic() - 1)
    assert len(timing.log_ratios) == 4 and timing.speedup is not None


def test_a_queue_that_cannot_be_held_costs_one_call_more(rounds_of):
    timing, log, *_ = rounds_of(3e6, 1000.0, kind="cuda", hidden=False)
    assert timing.is_brief and timing.word == "SLOWER" and len(timing.candidate_us) == 3
    assert calls_of(log) == 2 + 4 + 1


def test_the_interval_holds_twice_what_was_seen_and_the_baselines_usual_time(rounds_of):
    timing, *_ = rounds_of(lambda segment: 3e6 + 1e6 * (segment % 2), 1000.0)
    assert timing.speedup.lo == pytest.approx(1000 / 4e6 / 2) and timing.speedup.hi == pytest.approx(1000 / 3e6 * 2)
    span_usual_baseline(timing, 250.0, 0.99)
    assert timing.speedup.lo == pytest.approx(250 / 4e6 / 2) and timing.speedup.hi == pytest.approx(1000 / 3e6 * 2)
    assert timing.word == "SLOWER"


def test_of_a_call_that_may_reach_the_limit_no_two_are_queued(scripted, small_regions, reference_of, settings):
    from harness.timing.rounds import Rounds

    log = []
    session = scripted.Session(lambda _: 2e7, log)
    session.takes_long = True
    timing = Rounds(
        session, scripted.Backend(1000.0, []), reference_of(), settings, lambda sets, made, only=None: None, {1}
    ).run()
    assert [count for kind, count, *_ in (each for each in log if each[0] == "A")] == [1] * 5
    assert timing.word == "SLOWER"


def _rounds(scripted, reference_of, settings, a_us, b_us, **more):
    from harness.timing.rounds import Rounds

    session, backend = scripted.Session(lambda _: a_us, []), scripted.Backend(b_us, [])
    return Rounds(
        session, backend, reference_of(), settings, lambda sets, made, only=None: None, {1}, **more
    ).run()
