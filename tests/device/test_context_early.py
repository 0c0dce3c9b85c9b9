"""A GPU that is opened while PyTorch is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.device.choice import open_context_early
from harness.protocol.context_opening import open_in_thread

REPOSITORY = Path(__file__).resolve().parents[2]
OPENED_FIRST = """
import ctypes, sys
from harness.device.choice import open_context_early

open_context_early("cuda:0").join()
assert "torch" not in sys.modules
flags, active = ctypes.c_uint(), ctypes.c_int()
ctypes.CDLL("libcuda.so.1").cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))
import torch

print(active.value, flags.value, torch.ones(4, device="cuda").sum().item())
"""


def test_a_cpu_is_not_opened():
    assert open_context_early("cpu") is None


def test_a_gpu_that_is_not_there_is_no_error_here():
    thread = open_in_thread(99)
    thread.join(20)
    assert not thread.is_alive()


@pytest.mark.gpu
def test_the_context_is_there_before_pytorch_is_and_pytorch_works_in_it():
    ended = subprocess.run(
        [sys.executable, "-c", OPENED_FIRST], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert ended.stdout.split() == ["1", "0", "4.0"]
