"""Waits whose length is known: whether their times add up."""

from __future__ import annotations

import pytest

from harness.results.record import Record
from harness.selftest.known_time import Waits, sentence


def waits(once: float | None, twice: float, thrice: float, *, spin=4_000_000, kind="cuda", sm_mhz=2000.0) -> Waits:
    common = {
        "run_id": "r", "utc": "2026-01-01T00:00:00Z", "problem": "spin", "sizes": "SPIN=1", "dtype": "float32",
        "device_kind": kind, "sm_mhz": sm_mhz if kind == "cuda" else None,
    }
    failed = {"status": "unsure", "reason_code": "throttled", "reason": "it slowed down"}
    rows = [("itself", once), ("twice", twice), ("thrice", thrice)]
    return Waits(spin, [
        Record(**common, candidate=name, **(failed if time_us is None else {"status": "ok", "time_us": time_us}))
        for name, time_us in rows
    ])


def test_what_a_further_wait_costs_leaves_out_what_the_call_itself_does():
    found = waits(2005.0, 4005.0, 6005.0)
    assert (found.step_us, found.asked_us) == (2000.0, 2000.0)
    assert found.apart == found.bent == 0
    assert found.adds_up


def test_a_clock_that_runs_slow_is_apart_and_one_that_saturates_is_bent():
    slow = waits(1805.0, 3605.0, 5405.0)
    assert slow.apart == pytest.approx(-0.1) and slow.bent == 0 and not slow.adds_up
    bent = waits(2005.0, 5005.0, 6005.0)
    assert bent.bent == pytest.approx(0.249, abs=0.01) and not bent.adds_up


@pytest.mark.parametrize(("step_us", "adds_up"), [(16.0, True), (19.9, True), (20.1, False), (9.9, False)])
def test_a_short_wait_may_take_what_a_kernel_takes_to_start_beside_its_cycles(step_us, adds_up):
    found = waits(2 + step_us, 2 + 2 * step_us, 2 + 3 * step_us, spin=30_000)
    assert found.asked_us == 15.0 and found.apart == pytest.approx(step_us / 15 - 1) and found.adds_up is adds_up


def test_on_a_cpu_a_short_wait_may_be_late_by_as_much_as_it_is_interrupted():
    assert waits(205.0, 395.0, 605.0, spin=200_000, kind="cpu").adds_up
    assert not waits(205.0, 375.0, 605.0, spin=200_000, kind="cpu").adds_up
    assert not waits(205.0, 430.0, 655.0, spin=200_000, kind="cpu").adds_up


def test_without_an_sm_clock_nothing_was_asked_for_and_on_a_cpu_it_is_nanoseconds():
    assert waits(2005.0, 4005.0, 6005.0, sm_mhz=None).asked_us is None
    assert waits(2005.0, 4005.0, 6005.0, spin=2_000_000, kind="cpu").asked_us == 2000.0


def test_each_has_its_line():
    assert sentence(waits(2005.0, 4005.0, 6015.0)) == (
        "waiting once, twice and three times for 4000000 cycles: 2.00 ms each, +0.25 % from the 2.00 ms that were asked "
        "for, two are −0.12 % from the middle of one and three"
    )
    assert sentence(waits(None, 4005.0, 6015.0)) == (
        "waiting once, twice and three times for 4000000 cycles could not be timed: itself was unsure: it slowed down"
    )
