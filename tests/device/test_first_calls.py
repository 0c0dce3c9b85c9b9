"""The first calls of a GPU's libraries, made beside an import."""

from __future__ import annotations

import threading

import pytest
import torch

from harness.device.gpu_ahead import first_calls_made
from harness.reference.error_kernel import error_kernel


def test_a_cpu_has_no_first_calls_to_make():
    with first_calls_made(torch.device("cpu")):
        assert "first calls" not in [thread.name for thread in threading.enumerate()]


def test_what_fails_in_them_is_left_to_whoever_needs_it(monkeypatch, capfd):
    made = threading.Event()

    def fail(*_):
        made.set()
        raise RuntimeError("no room")

    monkeypatch.setattr(torch.cuda, "device", fail)
    with first_calls_made(torch.device("cuda")):
        assert made.wait(10)
    assert "no room" not in capfd.readouterr().err


@pytest.mark.gpu
def test_they_are_made_by_its_end_and_change_no_result():
    device = torch.device("cuda", 0)
    error_kernel.cache_clear()
    with first_calls_made(device):
        pass
    assert error_kernel.cache_info().currsize == 1
    a = torch.arange(64, dtype=torch.float64, device=device).reshape(8, 8)
    assert torch.equal((a @ a).cpu(), a.cpu() @ a.cpu())
