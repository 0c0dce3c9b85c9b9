"""Workers that are started before their turn: who gets them, and what becomes of those whose turn does not come."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.judge.worker_prestart import WorkerPrestart
from harness.model.baselines import BASELINES


class Starter:
    """Stands for what starts an entry's workers."""

    def __init__(self, entry) -> None:
        self.entry, self.started, self.closed, self.opening = entry, 0, False, False

    def prestart(self, *, open_device: bool) -> None:
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
def build_pool():
    """One that has built everything; its `starters` are in order."""
    made = SimpleNamespace(starters=[], is_ready=lambda entry: True)

    def prepared(entry):
        made.starters.append(Starter(entry))
        return entry, made.starters[-1]

    made.prepared = prepared
    return made


def test_a_worker_that_waits_is_the_one_that_its_entry_gets(build_pool):
    ahead, eager = WorkerPrestart(is_idle=False), BASELINES["eager"]
    ahead.start(eager, build_pool)
    ahead.start(eager, build_pool)
    (starter,) = build_pool.starters
    assert ahead.take(eager) is starter
    assert not starter.closed
    assert ahead.take(eager) is None


def test_a_worker_that_has_opened_the_device_for_a_turn_that_did_not_come_is_ended_unless_it_is_slow_to_start(build_pool):
    ahead = WorkerPrestart(is_idle=False)
    for name in ("torch.compile", "eager-tf32"):
        ahead.start(BASELINES[name], build_pool, open_device=True)
    compiled, tf32 = build_pool.starters
    assert ahead.open_count() == 2
    assert ahead.take(BASELINES["eager"]) is None
    assert (compiled.closed, tf32.closed) == (False, True) and ahead.open_count() == 1
    assert ahead.take(BASELINES["torch.compile"]) is compiled
    ahead.start(BASELINES["torch.compile"], build_pool)
    ahead.drop()
    assert build_pool.starters[-1].closed
    assert ahead.take(BASELINES["torch.compile"]) is None


def test_of_workers_that_only_wait_the_newest_are_kept(build_pool):
    ahead, entries = WorkerPrestart(is_idle=False), [replace(BASELINES["eager"], name=f"eager {number}") for number in range(5)]
    for entry in entries:
        ahead.start(entry, build_pool)
    assert ahead.take(entries[4]) is build_pool.starters[4]
    assert [starter.closed for starter in build_pool.starters] == [True, True, False, False, False]
    assert ahead.take(entries[2]) is build_pool.starters[2]


def test_of_several_entries_those_that_are_slow_to_start_are_started_long_before_their_turn(build_pool):
    ahead = WorkerPrestart(is_idle=False)
    ahead.start_slow(list(BASELINES.values()), build_pool)
    assert [starter.entry.name for starter in build_pool.starters] == ["torch.compile"]


def test_where_nothing_may_run_beside_a_call_nothing_is_started(build_pool):
    ahead = WorkerPrestart(is_idle=True)
    ahead.start(BASELINES["eager"], build_pool)
    assert build_pool.starters == []


def test_only_those_that_were_asked_to_open_the_device_are_waited_for(build_pool):
    ahead = WorkerPrestart(is_idle=False)
    ahead.start_slow(list(BASELINES.values()), build_pool)
    ahead.start(BASELINES["eager"], build_pool)
    assert ahead.wait_until_open() == []
    ahead.start(BASELINES["eager"], build_pool, open_device=True)
    assert ahead.wait_until_open() == [7]
    ahead.take(BASELINES["eager"])
    assert ahead.wait_until_open() == []
