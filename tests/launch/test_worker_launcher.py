"""Workers that are started before their turn: what they have behind them by then, and one that is gone."""

from __future__ import annotations

import os
import signal
import time

import pytest

from harness.launch.session import Session
from harness.launch.worker_launcher import WorkerLauncher
from harness.sandbox.sandbox_choice import strongest_sandbox

pytestmark = pytest.mark.processes


@pytest.fixture
def starter(cpu_backend, tmp_path):
    made = WorkerLauncher(cpu_backend, strongest_sandbox(), tmp_path)
    yield made
    made.close()


def prepared(child, backend):
    """What a worker says to the judge's first command of its turn."""
    session = Session(child, backend, 60.0, 60.0)
    if not child.has_greeted:
        session._ask({}, 60.0, "starting its process", send=False)
    return session._ask(backend.prepare_command(), 60.0, "opening the device")


def test_a_worker_that_has_opened_the_device_before_its_turn_is_the_one_that_plays(starter, cpu_backend):
    starter.prestart(open_device=True)
    pid = starter.wait_until_open()
    assert pid == starter.wait_until_open()
    child = starter.start()
    try:
        assert (child.pid, child.has_greeted) == (pid, True)
        assert prepared(child, cpu_backend) == {"prepared": "cpu", "timer": "monotonic"}
        assert starter.wait_until_open() is None
    finally:
        child.kill()


def test_a_worker_that_was_only_started_is_waited_for_by_nobody_and_greets_at_its_turn(starter, cpu_backend):
    starter.prestart()
    assert starter.wait_until_open() is None
    child = starter.start()
    try:
        assert not child.has_greeted
        assert prepared(child, cpu_backend) == {"prepared": "cpu", "timer": "monotonic"}
    finally:
        child.kill()


def test_one_that_is_there_already_can_still_be_asked_to_open_the_device(starter):
    starter.prestart()
    until = time.monotonic() + 60
    while not starter._prestart.channel.readable():
        assert time.monotonic() < until
        time.sleep(0.01)  # it may have no other core than this one
    starter.prestart(open_device=True)
    assert starter.wait_until_open() == starter._prestart.pid


def test_one_that_dies_while_it_waits_is_replaced_at_its_turn(starter, cpu_backend):
    starter.prestart(open_device=True)
    ahead = starter._prestart
    os.kill(ahead.pid, signal.SIGKILL)
    ahead.wait(20)
    child = starter.start()
    try:
        assert child is not ahead
        assert prepared(child, cpu_backend) == {"prepared": "cpu", "timer": "monotonic"}
    finally:
        child.kill()
