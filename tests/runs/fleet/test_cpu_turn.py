"""A fleet has the CPU's lock from when nothing is compiled and one of its judges is about to time there."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from harness.model.errors import DeviceBusy
from harness.report.progress import NullProgress
from harness.runs.fleet.fleet import Fleet, LocalExecutors


@pytest.fixture
def fleet():
    """A fleet of two judges of two models, the far ends of whose pipes are in `far`."""
    found = Fleet.__new__(Fleet)
    near, found.far = zip(*(Pipe() for _ in range(2)))
    found.judges = [SimpleNamespace(pipe=pipe, device="cuda:0", device_inside="cuda:0") for pipe in near]
    found._places, found._waiting, found._until_quiet, found._doubting = LocalExecutors(found.judges), {}, set(), set()
    found._teams = {number: SimpleNamespace(is_quiet=False, pause=lambda is_paused: None) for number in range(2)}
    found._progress, found._turn = NullProgress(), None
    return found


@pytest.fixture
def cpu_turn(fleet):
    """The CPU's turn of the fleet: whether it `is_gated`, and the `fault` that is raised where it does not come free."""
    turn = SimpleNamespace(is_gated=False, fault=None)

    @contextmanager
    def held():
        if turn.fault is not None:
            raise turn.fault
        turn.is_gated = True
        yield

    turn.held, fleet._turn = held, turn
    with ExitStack() as fleet._stack:
        yield turn


def test_the_cpu_is_held_once_nothing_is_compiled_and_somebody_is_about_to_time_on_it(fleet, cpu_turn):
    fleet.judges[1].device_inside = "cpu"
    for number in (0, 1):
        fleet._until_quiet = {number}
        fleet._answer_until_quiet()
        assert not cpu_turn.is_gated
        fleet._teams[number].is_quiet = True
    fleet._until_quiet = {0}
    fleet._answer_until_quiet()
    assert not cpu_turn.is_gated and fleet.far[0].recv() == "quiet"
    fleet._until_quiet = {1}
    fleet._answer_until_quiet()
    assert cpu_turn.is_gated and fleet.far[1].recv() == "quiet"


def test_where_the_cpu_does_not_come_free_nobody_times_on_it_and_a_gpu_goes_on(fleet, cpu_turn, monkeypatch):
    lost = []
    monkeypatch.setattr(Fleet, "_lose", lambda self, number, fault: lost.append((number, self._until_quiet.discard(number))))
    fleet.judges[1].device_inside, cpu_turn.fault = "cpu", DeviceBusy("still has it")
    for team in fleet._teams.values():
        team.is_quiet = True
    fleet._until_quiet = {0, 1}
    fleet._answer_until_quiet()
    assert lost == [(1, None)] and not fleet.far[1].poll() and fleet.far[0].recv() == "quiet"
