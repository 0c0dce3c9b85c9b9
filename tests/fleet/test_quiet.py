"""A referee whose clock is in doubt asks the parent, where the compilers are, to say when they have ended."""

from __future__ import annotations

from multiprocessing import Pipe
from types import SimpleNamespace

import pytest

from harness.fleet.referee import DeliveredBuilds
from harness.fleet.places import LocalPlaces
from harness.fleet.running import Fleet
from harness.report.progress import NullProgress


@pytest.fixture
def fleet():
    """A fleet of two referees of two models, the far ends of whose pipes are in `far`."""
    found = Fleet.__new__(Fleet)
    near, found.far = zip(*(Pipe() for _ in range(2)))
    found._places = LocalPlaces([SimpleNamespace(pipe=pipe, device=f"cuda:{number}") for number, pipe in enumerate(near)])
    found._waiting, found._until_quiet = {}, set()
    found._teams = {number: SimpleNamespace(is_quiet=False) for number in range(2)}
    found._progress = NullProgress()
    return found


def test_it_is_answered_once_nothing_is_compiled_for_any_model(fleet):
    fleet._take(1, "until quiet")
    fleet._answer_until_quiet()
    fleet._teams[1].is_quiet = True
    fleet._answer_until_quiet()
    assert not fleet.far[1].poll()
    fleet._teams[0].is_quiet = True
    fleet._answer_until_quiet()
    fleet._answer_until_quiet()
    assert fleet.far[1].recv() == "quiet"
    assert not fleet.far[1].poll() and not fleet.far[0].poll()


def test_it_is_asked_only_while_something_is_compiled():
    near, far = Pipe()
    builds = DeliveredBuilds(near)
    builds.take({}, quiet=False)
    far.send("quiet")
    builds.wait_until_idle()
    assert far.recv() == ("until quiet",)
    assert builds.is_idle
    builds.wait_until_idle()
    assert not far.poll()
