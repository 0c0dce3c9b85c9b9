"""What a GPU is held against after each player: what others hold is told once, and then no longer waited for."""

from __future__ import annotations

import pytest
import torch

from harness.device import health
from harness.device.health import Health
from harness.wire import cuda_driver

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda:0")
BYTES = 1 << 30


@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setattr(health, "_PATIENCE_S", 0.2)
    torch.zeros(1, device=DEVICE)
    return Health(DEVICE, lambda: 0)


@pytest.fixture
def newcomer():
    """Memory of which nobody told `Health`, as another process would hold it; released at the end."""
    addresses = []
    yield lambda: addresses.append(cuda_driver.allocate(BYTES))
    for address in addresses:
        cuda_driver.free(address)


def test_memory_that_somebody_new_holds_is_told_once(watched, newcomer):
    assert watched.left_bytes() == 0
    newcomer()
    assert watched.left_bytes() == pytest.approx(BYTES, rel=0.1)
    assert watched.left_bytes() == 0
    newcomer()
    assert watched.left_bytes() == pytest.approx(BYTES, rel=0.1)


def test_what_was_there_before_settling_is_no_finding(watched, newcomer):
    newcomer()
    watched.settle()
    assert watched.left_bytes() == 0
    assert watched.trouble() is None
