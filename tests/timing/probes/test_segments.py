"""Segments in which a worker is looked at: what each is made for, made from, and held against."""

from __future__ import annotations

import pytest

from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe

from .conftest import USUAL_US, Session, probe, probe_runner_of, reference_of


@pytest.mark.parametrize(("what", "probed"), [
    (Probe.FLUSH, [(True, False, False)]), (Probe.EARLY_READ, [(False, True, False)]), (Probe.LATE_INPUT, [(False, False, True)]),
    (Probe.INPUT_VALUE, [(False, False, False)]), (Probe.KERNELS, [(False, False, False)]),
])
def test_one_segment_for_each_thing_that_is_looked_at(what, probed):
    session = Session()
    probe_runner = probe(session, what=what)
    assert session.probed == probed
    assert len(probe_runner.recorded) == (what is Probe.KERNELS)


@pytest.mark.parametrize("what", list(Probe))
def test_nothing_is_drawn_or_worked_out_for_a_segment_while_somebody_waits_for_it(what):
    """One that took longer to begin than others would be told by that."""
    session, reference, drawn_for = Session(), reference_of(), []
    draw = reference.draw
    probe_runner = probe_runner_of(session, reference=reference)
    probe_runner.prepare(draw(), 5)
    reference.draw = lambda *family: drawn_for.append(len(session.probed)) or draw(*family)
    for turn in range(3):
        probe_runner.at(what, [draw() for _ in range(5)], [USUAL_US], gate=True)
        assert drawn_for == [], "drawn before the segment or beside it"
        probe_runner.settle()  # as the next segment does
        assert len(drawn_for) == (what in (Probe.LATE_INPUT, Probe.INPUT_VALUE))
        drawn_for.clear()
    assert len(session.probed) == 3 and len({bytes(each.region.numpy()) for each in session.seen}) == 15


def test_what_is_ready_is_used_in_the_place_of_one_that_was_drawn_and_made_anew_of_that(chosen):
    session, reference = Session(), reference_of()
    probe_runner = probe_runner_of(session, reference=reference)
    first, (second, third) = reference.draw(), ([reference.draw() for _ in range(5)] for _ in range(2))
    chosen(3)
    probe_runner.prepare(first, 5)
    chosen(1)
    for drawn in (second, third):
        probe_runner.at(Probe.LATE_INPUT, drawn, [USUAL_US], gate=True)
        probe_runner.settle()
    assert session.lacking == [(5, 3), (5, 1)]
    assert session.seen == [*second[:3], first, second[4], third[0], second[3], *third[2:]]


def test_without_times_to_hold_it_against_a_segment_is_made_for_them():
    for what, segments in ((Probe.EARLY_READ, 2), (Probe.LATE_INPUT, 2), (Probe.INPUT_VALUE, 2), (Probe.FLUSH, 1)):
        session = Session(call_us=3 * USUAL_US)
        probe_runner = probe(session, what=what, usual_us=())
        assert len(session.probed) == segments
        assert all(not found.is_finding for found in probe_runner.results.values())


def test_who_takes_longer_in_the_pairs_than_before_is_not_cleared_by_them():
    """Faster with open inputs, and honest for a while once it has seen them."""
    session = Session()
    launch = session.launch

    def warned(sets, *, early_s=0.0, **how):
        session.call_us = USUAL_US - 50 if not session.probed else USUAL_US + 50
        return launch(sets, early_s=early_s, **how)

    session.launch = warned
    found = probe(session, what=Probe.EARLY_READ).results[Probe.EARLY_READ]
    assert found == ProbeResult(USUAL_US, USUAL_US - 50, 0.0)
    assert found.is_finding and not found.is_certain


def test_who_was_slow_by_chance_before_is_cleared_by_pairs_that_are_not():
    session = Session()
    found = probe(session, what=Probe.EARLY_READ, usual_us=[3 * USUAL_US]).results[Probe.EARLY_READ]
    assert found == ProbeResult(USUAL_US, USUAL_US) and len(session.probed) == 3
