"""A launch whose inputs are complete only with its window: who began before takes longer then, or is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from harness.launch.failures import Failed
from harness.model.verdict import ReasonCode, Status
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe

from .conftest import USUAL_US, Session, probe, reference_of, wrong


@pytest.mark.parametrize("count", [2, 5])
def test_a_call_that_takes_as_long_whenever_its_inputs_come_is_looked_at_once(count):
    session = Session()
    assert probe(session, count=count).results[Probe.LATE_INPUT] == ProbeResult(USUAL_US, USUAL_US)
    (launches, index), = session.lacking
    assert launches == count and 1 <= index < count


def test_one_that_takes_longer_then_is_looked_at_five_times(chosen):
    chosen(2)
    session = Session(later_us=50.0)
    assert probe(session).results[Probe.LATE_INPUT] == ProbeResult(USUAL_US + 50, USUAL_US)
    assert len(session.lacking) == 5


def test_a_machine_that_is_busier_than_it_was_is_doubted_and_nobody_is_blamed_for_it(chosen):
    session = Session(call_us=3 * USUAL_US)
    chosen(3)
    for index in (3, 1):  # of the second no launch before it counts
        chosen(index)
        found = probe(session, count=5).results[Probe.LATE_INPUT]
        assert found == ProbeResult(3 * USUAL_US, USUAL_US, 0.0)
        assert found.is_finding and not found.is_certain


@pytest.mark.parametrize(("count", "index", "beside_us"), [(2, 1, 50.0), (5, 1, 50.0), (5, 2, None), (5, 4, None)])
def test_work_begun_before_is_certain_where_calls_beside_show_it_too(chosen, count, index, beside_us):
    chosen(index)
    session = Session(later_us=50.0)
    found = probe(session, count=count).results[Probe.LATE_INPUT]
    assert found == ProbeResult(USUAL_US + 50, USUAL_US, beside_us) and found.is_certain
    assert session.lacking == 5 * [(count, index)]


@pytest.mark.parametrize("index", [1, 3, 4])
def test_who_is_as_slow_for_the_rest_of_the_segment_is_found_out_all_the_same(chosen, index):
    chosen(index)
    session = Session(later_us=50.0)
    launch = session.launch

    def padding(sets, *, late_inputs=None, **how):
        made = launch(sets, late_inputs=late_inputs, **how)
        if late_inputs is not None:
            slow = [replace(each, time_us=USUAL_US + 50) for each in made.launches[session.index:]]
            made.launches[session.index:] = slow
        return made

    session.launch = padding
    found = probe(session).results[Probe.LATE_INPUT]
    assert (found.usual_us, found.early_us) == (USUAL_US + 50, USUAL_US) and found.is_certain


def test_who_is_slow_for_a_while_after_such_a_launch_is_doubted_still():
    session = Session(later_us=50.0)
    launch = session.launch

    def slow_after(sets, *, late_inputs=None, **how):
        was_probed, session.call_us = bool(session.lacking), USUAL_US
        if late_inputs is None and was_probed:
            session.call_us += 50.0
        return launch(sets, late_inputs=late_inputs, **how)

    session.launch = slow_after
    found = probe(session, count=2).results[Probe.LATE_INPUT]
    assert found == ProbeResult(USUAL_US + 50, USUAL_US, 0.0)
    assert found.is_finding and not found.is_certain


@pytest.mark.parametrize("index", [1, 2, 4])
def test_who_is_honest_for_a_dozen_queues_once_it_was_found_out_is_doubted(chosen, index):
    """Fast until a launch that was begun before has other inputs than it saw, and slow from then on."""
    chosen(index)
    session = Session(later_us=50.0)
    launch = session.launch

    def warned(sets, **how):
        was = bool(session.lacking)
        session.call_us, session.later_us = (USUAL_US + 50, 0.0) if was else (USUAL_US, 50.0)
        return launch(sets, **how)

    session.launch = warned
    found = probe(session).results[Probe.LATE_INPUT]
    assert found == ProbeResult(USUAL_US + 50, USUAL_US, 0.0)
    assert found.is_finding and not found.is_certain


@pytest.mark.parametrize(("slower", "launches", "findings"), [
    ([0, 1, 1, 1, 1], 1, 0), ([1, 0, 0, 0, 0], 5, 1), ([1, 0, 1, 0, 1], 5, 3), ([1, 1, 1, 1, 1], 5, 5),
])
def test_after_a_finding_all_five_are_made_and_each_finding_counts(chosen, slower, launches, findings):
    chosen(2)
    session, coins = Session(), iter(slower)
    launch = session.launch

    def by_chance(sets, **how):
        session.later_us = 50.0 * next(coins)
        return launch(sets, **how)

    session.launch = by_chance
    found = probe(session).results[Probe.LATE_INPUT]
    assert (len(session.lacking), found.findings, found.is_finding) == (launches, findings, findings == 5)


def test_inputs_of_which_no_two_draws_differ_are_complete_from_the_start():
    session = Session()
    found = probe(session, reference=reference_of(lambda: [torch.ones(8, 8)]))
    assert session.lacking == [] and found.results[Probe.LATE_INPUT] == ProbeResult(USUAL_US, USUAL_US)


def test_an_output_that_is_wrong_each_time_its_inputs_are_completed_late_was_begun_before():
    session = Session()

    def verify(sets, made, only=None):
        if only is not None and only == [session.lacking[-1][1]]:
            raise wrong()

    with pytest.raises(Failed) as caught:
        probe(session, verify)
    assert caught.value.verdict.reason_code is ReasonCode.CLOCKS_DISAGREE
    assert "wrong each time" in caught.value.verdict.reason and "element [0] is 1" in caught.value.verdict.reason
    assert len(session.lacking) == 3


def test_one_that_is_wrong_now_and_then_is_wrong_and_not_accused():
    session = Session()

    def verify(sets, made, only=None):
        if len(session.lacking) == 1 and only == [session.lacking[0][1]]:
            raise wrong()

    with pytest.raises(Failed) as caught:
        probe(session, verify)
    assert caught.value.verdict.status is Status.INCORRECT
    assert caught.value.verdict.reason == wrong().verdict.reason + "; a part of the inputs came as the timed window opened"


def test_another_launch_that_is_wrong_is_wrong():
    session = Session()

    def verify(sets, made, only=None):
        if only is not None and len(only) > 1:
            raise wrong()

    with pytest.raises(Failed) as caught:
        probe(session, verify)
    assert caught.value.verdict == wrong().verdict and len(session.lacking) == 1
