"""Segments in which a player is looked at: what each is made for, made from, and held against."""

from __future__ import annotations

import pytest

from harness.timing.probes.result import EarlyLook
from harness.timing.probes.schedule import Look

from .conftest import USUAL_US, Session, look, looking_of, reference_of


@pytest.mark.parametrize(("what", "looked"), [
    (Look.FLUSH, [(True, False, False)]), (Look.OPEN, [(False, True, False)]), (Look.LATE, [(False, False, True)]),
    (Look.VALUES, [(False, False, False)]), (Look.KERNELS, [(False, False, False)]),
])
def test_one_segment_for_each_thing_that_is_looked_at(what, looked):
    session = Session()
    looker = look(session, what=what)
    assert session.looked == looked
    assert len(looker.recorded) == (what is Look.KERNELS)


@pytest.mark.parametrize("what", list(Look))
def test_nothing_is_drawn_or_worked_out_for_a_segment_while_somebody_waits_for_it(what):
    """One that took longer to begin than others would be told by that."""
    session, reference, drawn_for = Session(), reference_of(), []
    draw = reference.draw
    looker = looking_of(session, reference=reference)
    looker.prepare(draw(), 5)
    reference.draw = lambda *family: drawn_for.append(len(session.looked)) or draw(*family)
    for turn in range(3):
        looker.at(what, [draw() for _ in range(5)], [USUAL_US], hold=True)
        assert drawn_for == [], "drawn before the segment or beside it"
        looker.settle()  # as the next segment does
        assert len(drawn_for) == (what in (Look.LATE, Look.VALUES))
        drawn_for.clear()
    assert len(session.looked) == 3 and len({bytes(each.region.numpy()) for each in session.seen}) == 15


def test_what_is_ready_is_used_in_the_place_of_one_that_was_drawn_and_made_anew_of_that(chosen):
    session, reference = Session(), reference_of()
    looker = looking_of(session, reference=reference)
    first, (second, third) = reference.draw(), ([reference.draw() for _ in range(5)] for _ in range(2))
    chosen(3)
    looker.prepare(first, 5)
    chosen(1)
    for drawn in (second, third):
        looker.at(Look.LATE, drawn, [USUAL_US], hold=True)
        looker.settle()
    assert session.lacking == [(5, 3), (5, 1)]
    assert session.seen == [*second[:3], first, second[4], third[0], second[3], *third[2:]]


def test_without_times_to_hold_it_against_a_segment_is_made_for_them():
    for what, segments in ((Look.OPEN, 2), (Look.LATE, 2), (Look.VALUES, 2), (Look.FLUSH, 1)):
        session = Session(call_us=3 * USUAL_US)
        looker = look(session, what=what, usual_us=())
        assert len(session.looked) == segments
        assert all(found is None or not found.is_finding for found in (looker.opened, looker.completed, looker.valued))


def test_who_takes_longer_in_the_pairs_than_before_is_not_cleared_by_them():
    """Faster with open inputs, and honest for a while once it has seen them."""
    session = Session()
    launch = session.launch

    def warned(sets, *, early_s=0.0, **how):
        session.call_us = USUAL_US - 50 if not session.looked else USUAL_US + 50
        return launch(sets, early_s=early_s, **how)

    session.launch = warned
    found = look(session, what=Look.OPEN).opened
    assert found == EarlyLook(USUAL_US, USUAL_US - 50, 0.0)
    assert found.is_finding and not found.is_certain


def test_who_was_slow_by_chance_before_is_cleared_by_pairs_that_are_not():
    session = Session()
    found = look(session, what=Look.OPEN, usual_us=[3 * USUAL_US]).opened
    assert found == EarlyLook(USUAL_US, USUAL_US) and len(session.looked) == 3
