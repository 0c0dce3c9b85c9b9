"""What a GPU is held against after each worker: what others hold is told once, and then no longer waited for."""

from __future__ import annotations

import gc

import pytest
import torch

from harness.device import health
from harness.device.health import Health
from harness.protocol import cuda_driver
from harness.protocol.clocks.stopwatch import TorchEvents

DEVICE = torch.device("cuda:0")
BYTES = 1 << 30


@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setattr(health, "_PATIENCE_S", 0.2)
    gc.collect()  # what an earlier test's backend holds goes now, and not while it counts for somebody else's
    torch.cuda.empty_cache()
    torch.zeros(1, device=DEVICE)
    return Health(DEVICE, lambda: 0, TorchEvents(DEVICE))


@pytest.fixture
def newcomer():
    """Memory of which nobody told `Health`, as another process would hold it; released at the end."""
    addresses = []
    yield lambda: addresses.append(cuda_driver.allocate(BYTES))
    for address in addresses:
        cuda_driver.free(address)


@pytest.fixture
def told():
    """`Health` without a GPU: others hold what its `others` says, in bytes."""
    made = Health.__new__(Health)
    made._held_bytes, made._waiting_bytes, made.others = 1 << 30, None, 1 << 30
    made._bytes_of_others = lambda: made.others
    return made


def test_what_a_waiting_worker_holds_is_its_own_and_what_is_beyond_it_is_left_over(told, monkeypatch):
    monkeypatch.setattr(health, "_PATIENCE_S", 0.0)
    told.others += 600 << 20
    told.note_waiting_worker()
    assert told.left_bytes(1) == 0
    assert told.left_bytes(0) == 600 << 20
    told._held_bytes = 1 << 30
    told.others += 700 << 20
    assert told.left_bytes(1) == 700 << 20


@pytest.mark.parametrize(("waiting_mb", "grown_mb", "told_mb"), [(600, 290, 0), (600, 310, 310), (300, 250, 0), (300, 290, 290)])
def test_the_judges_own_growth_is_nobodys_as_long_as_a_process_that_lives_holds_twice_that(
    told, monkeypatch, waiting_mb, grown_mb, told_mb
):
    monkeypatch.setattr(health, "_PATIENCE_S", 0.0)
    told.others += waiting_mb << 20
    told.note_waiting_worker()
    told.others += grown_mb - waiting_mb << 20
    assert told.left_bytes(0) == told_mb << 20


def test_more_than_a_waiting_worker_can_hold_is_not_taken_for_its_own(told, monkeypatch):
    monkeypatch.setattr(health, "_PATIENCE_S", 0.0)
    told.others += 3 << 30
    told.note_waiting_worker()
    assert told.left_bytes(1) == 3 << 30


@pytest.mark.gpu
def test_memory_that_somebody_new_holds_is_told_once(watched, newcomer):
    assert watched.left_bytes() == 0
    newcomer()
    assert watched.left_bytes() == pytest.approx(BYTES, rel=0.1)
    assert watched.left_bytes() == 0
    newcomer()
    assert watched.left_bytes() == pytest.approx(BYTES, rel=0.1)


@pytest.mark.gpu
def test_nobody_waits_with_the_device_open_before_it_is_known_what_that_takes(watched, newcomer):
    assert not watched.has_room_for_waiting()
    newcomer()
    watched.note_waiting_worker()
    free_bytes, total_bytes = torch.cuda.mem_get_info(DEVICE)
    assert watched.has_room_for_waiting() == (free_bytes >= total_bytes / 2)
    assert watched.left_bytes(1) == 0


@pytest.mark.gpu
def test_what_was_there_before_settling_is_no_finding(watched, newcomer):
    newcomer()
    watched.settle()
    assert watched.left_bytes() == 0
    assert watched.trouble() is None
