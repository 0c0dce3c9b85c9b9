"""What a worker on a CPU sets before it loads anything."""

from __future__ import annotations

import pytest
import torch

from harness.device.cpu import CpuBackend
from harness.worker.launch_slots import CpuSlots


@pytest.mark.parametrize("is_other", [False, True])
def test_threads_are_set_only_where_they_are_not_as_many_already(monkeypatch, is_other):
    """In a process that set them, PyTorch's products inside a parallel loop take half as long again."""
    backend, set_to = CpuBackend(), []
    command = backend.prepare_command()
    monkeypatch.setattr(torch, "set_num_threads", set_to.append)
    threads = torch.get_num_threads() + int(is_other)
    CpuSlots(backend.arena, {**command, "threads": threads}, channel=None)
    assert set_to == ([threads] if is_other else [])
