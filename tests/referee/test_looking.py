"""Segments in which a player is looked at: above all those with a launch whose inputs are complete only with its window."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from harness.inputs.families import GIVEN, family_named
from harness.inputs.sets import draw_set
from harness.referee import failures, looking
from harness.referee.backlog import Backlog
from harness.referee.drawn_looks import Look
from harness.referee.early import EarlyLook
from harness.referee.failures import Failed
from harness.referee.looking import Looking
from harness.referee.turns import Launch, Launches
from harness.verdict import ReasonCode, Status

USUAL_US = 100.0
BENCH = SimpleNamespace(kind="cuda", synchronize=lambda: None)


class Session:
    """A player whose calls take `call_us`, and so much longer where the inputs were completed late or have signs."""

    def __init__(self, later_us=0.0, call_us=USUAL_US, signed_us=0.0):
        self.later_us, self.call_us, self.lacking, self.looked, self.seen = later_us, call_us, [], [], []
        self.signed_us = signed_us

    def launch(self, sets, *, hold, early_s=0.0, inspect=False, incomplete=None, meanwhile=None):
        if meanwhile is not None:
            meanwhile()
        self.index = None if incomplete is None else incomplete.index
        self.seen += sets
        self.looked.append((inspect, early_s > 0, incomplete is not None))
        times = [self.call_us] * len(sets)
        if incomplete is not None:
            self.lacking.append((len(sets), incomplete.index))
            times[incomplete.index] += self.later_us
        for index, inputs in enumerate(sets):
            times[index] += self.signed_us * (inputs.family.name == "signs")
        return Launches([Launch(time_us, 3.0, None, None, []) for time_us in times], 1.0, None, [True] * len(sets))


@pytest.fixture
def chosen(monkeypatch):
    """`chosen(index)`: the launch that is looked at is always this one of its segment."""
    return lambda index: monkeypatch.setattr(looking.secrets, "randbelow", lambda below: index - 1)


def reference_of(get_inputs=lambda: [torch.rand(32, 32)], timed=("signs",)):
    return SimpleNamespace(
        draw=lambda family=GIVEN: draw_set(get_inputs, torch.device("cpu"), family, [0]),
        timed_families=[family_named(name) for name in timed],
    )


def looking_of(session, verify=lambda sets, made, only=None: None, *, count=5, reference=None):
    reference, backlog = reference or reference_of(), Backlog(BENCH.synchronize)
    looker = Looking(session, BENCH, reference, verify, backlog, lambda: [reference.draw() for _ in range(count)])
    looker.settle = backlog.settle
    return looker


def look(session, verify=lambda sets, made, only=None: None, *, count=5, reference=None, what=Look.LATE, usual_us=(USUAL_US,)):
    reference = reference or reference_of()
    looker = looking_of(session, verify, count=count, reference=reference)
    looker.at(what, [reference.draw() for _ in range(count)], usual_us, hold=True)
    looker.settle()
    return looker


def wrong():
    return failures.failed(Status.INCORRECT, ReasonCode.WRONG_VALUES, "element [0] is 1 where 2 is expected")


@pytest.mark.parametrize("count", [2, 5])
def test_a_call_that_takes_as_long_whenever_its_inputs_come_is_looked_at_once(count):
    session = Session()
    assert look(session, count=count).completed == EarlyLook(USUAL_US, USUAL_US)
    (launches, index), = session.lacking
    assert launches == count and 1 <= index < count


def test_one_that_takes_longer_then_is_looked_at_five_times(chosen):
    chosen(2)
    session = Session(later_us=50.0)
    assert look(session).completed == EarlyLook(USUAL_US + 50, USUAL_US)
    assert len(session.lacking) == 5


def test_a_machine_that_is_busier_than_it_was_is_doubted_and_nobody_is_blamed_for_it(chosen):
    session = Session(call_us=3 * USUAL_US)
    chosen(3)
    for index in (3, 1):  # of the second no launch before it counts
        chosen(index)
        found = look(session, count=5).completed
        assert found == EarlyLook(3 * USUAL_US, USUAL_US, 0.0)
        assert found.is_finding("cuda") and not found.is_certain("cuda")


@pytest.mark.parametrize(("count", "index", "beside_us"), [(2, 1, 50.0), (5, 1, 50.0), (5, 2, None), (5, 4, None)])
def test_work_begun_before_is_certain_where_calls_beside_show_it_too(chosen, count, index, beside_us):
    chosen(index)
    session = Session(later_us=50.0)
    found = look(session, count=count).completed
    assert found == EarlyLook(USUAL_US + 50, USUAL_US, beside_us) and found.is_certain("cuda")
    assert session.lacking == 5 * [(count, index)]


@pytest.mark.parametrize("index", [1, 3, 4])
def test_who_is_as_slow_for_the_rest_of_the_segment_is_found_out_all_the_same(chosen, index):
    chosen(index)
    session = Session(later_us=50.0)
    launch = session.launch

    def padding(sets, *, incomplete=None, **how):
        made = launch(sets, incomplete=incomplete, **how)
        if incomplete is not None:
            slow = [replace(each, time_us=USUAL_US + 50) for each in made.launches[session.index:]]
            made.launches[session.index:] = slow
        return made

    session.launch = padding
    found = look(session).completed
    assert (found.usual_us, found.early_us) == (USUAL_US + 50, USUAL_US) and found.is_certain("cuda")


def test_who_is_slow_for_a_while_after_such_a_launch_is_doubted_still():
    session = Session(later_us=50.0)
    launch = session.launch

    def slow_after(sets, *, incomplete=None, **how):
        was_looked_at, session.call_us = bool(session.lacking), USUAL_US
        if incomplete is None and was_looked_at:
            session.call_us += 50.0
        return launch(sets, incomplete=incomplete, **how)

    session.launch = slow_after
    found = look(session, count=2).completed
    assert found == EarlyLook(USUAL_US + 50, USUAL_US, 0.0)
    assert found.is_finding("cuda") and not found.is_certain("cuda")


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
    found = look(session).completed
    assert (len(session.lacking), found.findings, found.is_finding("cuda")) == (launches, findings, findings == 5)


def test_an_output_that_is_wrong_each_time_its_inputs_are_completed_late_was_begun_before():
    session = Session()

    def verify(sets, made, only=None):
        if only is not None and only == [session.lacking[-1][1]]:
            raise wrong()

    with pytest.raises(Failed) as caught:
        look(session, verify)
    assert caught.value.verdict.reason_code is ReasonCode.CLOCKS_DISAGREE
    assert "wrong each time" in caught.value.verdict.reason and "element [0] is 1" in caught.value.verdict.reason
    assert len(session.lacking) == 3


def test_one_that_is_wrong_now_and_then_is_wrong_and_not_accused():
    session = Session()

    def verify(sets, made, only=None):
        if len(session.lacking) == 1 and only == [session.lacking[0][1]]:
            raise wrong()

    with pytest.raises(Failed) as caught:
        look(session, verify)
    assert caught.value.verdict.status is Status.INCORRECT
    assert caught.value.verdict.reason == wrong().verdict.reason + "; a part of the inputs came as the timed window opened"


def test_another_launch_that_is_wrong_is_wrong():
    session = Session()

    def verify(sets, made, only=None):
        if only is not None and len(only) > 1:
            raise wrong()

    with pytest.raises(Failed) as caught:
        look(session, verify)
    assert caught.value.verdict == wrong().verdict and len(session.lacking) == 1


def test_inputs_of_which_no_two_draws_differ_are_complete_from_the_start():
    session = Session()
    found = look(session, reference=reference_of(lambda: [torch.ones(8, 8)]))
    assert session.lacking == [] and found.completed == EarlyLook(USUAL_US, USUAL_US)


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
    found = look(session).completed
    assert found == EarlyLook(USUAL_US + 50, USUAL_US, 0.0)
    assert found.is_finding("cuda") and not found.is_certain("cuda")


@pytest.mark.parametrize(("what", "looked"), [
    (Look.FLUSH, [(True, False, False)]), (Look.OPEN, [(False, True, False)]), (Look.LATE, [(False, False, True)]),
    (Look.VALUES, [(False, False, False)]),
])
def test_one_segment_for_each_thing_that_is_looked_at(what, looked):
    session = Session()
    look(session, what=what)
    assert session.looked == looked


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
        assert all(found is None or not found.is_finding("cuda") for found in (looker.opened, looker.completed, looker.valued))


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
    assert found.is_finding("cuda") and not found.is_certain("cuda")


def test_who_was_slow_by_chance_before_is_cleared_by_pairs_that_are_not():
    session = Session()
    found = look(session, what=Look.OPEN, usual_us=[3 * USUAL_US]).opened
    assert found == EarlyLook(USUAL_US, USUAL_US) and len(session.looked) == 3


@pytest.mark.parametrize("count", [2, 5])
def test_one_launch_has_inputs_of_another_family_and_nobody_who_takes_as_long_is_looked_at_again(count):
    session = Session()
    assert look(session, what=Look.VALUES, count=count).valued == EarlyLook(USUAL_US, USUAL_US)
    names = [inputs.family.name for inputs in session.seen]
    assert len(names) == count and names[0] == "as given" and names.count("signs") == 1


def test_who_takes_longer_on_other_values_is_looked_at_five_times(chosen):
    chosen(2)
    session = Session(signed_us=50.0)
    found = look(session, what=Look.VALUES).valued
    assert found == EarlyLook(USUAL_US + 50, USUAL_US) and found.is_certain("cuda") and found.findings == 5
    assert [inputs.family.name for inputs in session.seen].count("signs") == 5


def test_who_is_wrong_on_other_values_while_it_is_timed_is_wrong():
    """Right in the checks, where every launch may be one, and not where it is timed."""
    session = Session()

    def verify(sets, made, only=None):
        if any(inputs.family.name == "signs" for inputs in sets):
            raise wrong()

    with pytest.raises(Failed) as caught:
        look(session, verify, what=Look.VALUES)
    assert caught.value.verdict == wrong().verdict


def test_of_the_families_each_has_its_turn():
    names = set()
    for _ in range(40):
        session = Session()
        look(session, what=Look.VALUES, reference=reference_of(timed=("signs", "identity")))
        names |= {inputs.family.name for inputs in session.seen}
    assert names == {"as given", "signs", "identity"}
