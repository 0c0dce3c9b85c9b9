"""Players that are started before their turn: who gets them, and what becomes of those whose turn does not come."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.judge.worker_prestart import Ahead
from harness.model.baselines import BASELINES


class Starter:
    """Stands for what starts a contestant's players."""

    def __init__(self, entry) -> None:
        self.entry, self.started, self.closed, self.opening = entry, 0, False, False

    def start_ahead(self, *, open_device: bool) -> None:
        self.started += 1
        self.opening |= open_device

    @property
    def is_opening(self) -> bool:
        return self.opening

    def wait_until_open(self) -> int | None:
        return 7 if self.opening else None

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def workshop():
    """One that has built everything; its `starters` are in order."""
    made = SimpleNamespace(starters=[], is_ready=lambda entry: True)

    def contestant(entry):
        made.starters.append(Starter(entry))
        return entry, made.starters[-1]

    made.contestant = contestant
    return made


def test_a_player_that_waits_is_the_one_that_its_entry_gets(workshop):
    ahead, eager = Ahead(is_idle=False), BASELINES["eager"]
    ahead.start(eager, workshop)
    ahead.start(eager, workshop)
    (starter,) = workshop.starters
    assert ahead.take(eager) is starter
    assert not starter.closed
    assert ahead.take(eager) is None


def test_a_player_that_has_opened_the_device_for_a_turn_that_did_not_come_is_ended_unless_it_is_slow_to_start(workshop):
    ahead = Ahead(is_idle=False)
    for name in ("torch.compile", "eager-tf32"):
        ahead.start(BASELINES[name], workshop, open_device=True)
    compiled, tf32 = workshop.starters
    assert ahead.take(BASELINES["eager"]) is None
    assert (compiled.closed, tf32.closed) == (False, True)
    assert ahead.take(BASELINES["torch.compile"]) is compiled
    ahead.start(BASELINES["torch.compile"], workshop)
    ahead.drop()
    assert workshop.starters[-1].closed
    assert ahead.take(BASELINES["torch.compile"]) is None


def test_of_players_that_only_wait_the_newest_are_kept(workshop):
    ahead, entries = Ahead(is_idle=False), [replace(BASELINES["eager"], name=f"eager {number}") for number in range(5)]
    for entry in entries:
        ahead.start(entry, workshop)
    assert ahead.take(entries[4]) is workshop.starters[4]
    assert [starter.closed for starter in workshop.starters] == [True, True, False, False, False]
    assert ahead.take(entries[2]) is workshop.starters[2]


def test_of_several_entries_those_that_are_slow_to_start_are_started_long_before_their_turn(workshop):
    ahead = Ahead(is_idle=False)
    ahead.start_slow(list(BASELINES.values()), workshop)
    assert [starter.entry.name for starter in workshop.starters] == ["torch.compile"]


def test_where_nothing_may_run_beside_a_call_nothing_is_started(workshop):
    ahead = Ahead(is_idle=True)
    ahead.start(BASELINES["eager"], workshop)
    assert workshop.starters == []


def test_only_those_that_were_asked_to_open_the_device_are_waited_for(workshop):
    ahead = Ahead(is_idle=False)
    ahead.start_slow(list(BASELINES.values()), workshop)
    ahead.start(BASELINES["eager"], workshop)
    assert ahead.wait_until_open() == []
    ahead.start(BASELINES["eager"], workshop, open_device=True)
    assert ahead.wait_until_open() == [7]
    ahead.take(BASELINES["eager"])
    assert ahead.wait_until_open() == []


def test_one_that_has_opened_the_device_for_the_turn_after_the_next_is_kept_for_one_turn_longer(workshop):
    ahead = Ahead(is_idle=False)
    eager, tf32, other = BASELINES["eager"], BASELINES["eager-tf32"], replace(BASELINES["eager"], name="other")
    ahead.start(eager, workshop, open_device=True)
    ahead.start(tf32, workshop, open_device=True, for_later=True)
    assert ahead.open_count() == 2
    of_eager, of_tf32 = workshop.starters
    assert ahead.take(eager) is of_eager and not of_tf32.closed
    ahead.start(tf32, workshop, open_device=True)
    assert len(workshop.starters) == 2 and ahead.open_count() == 1
    assert ahead.take(other) is None and of_tf32.closed, "its turn did not come"
