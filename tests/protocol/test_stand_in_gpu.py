"""What a candidate hears of a GPU that is not there, and what lets Triton's interpreter run it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

from harness.build.device_answers import DeviceFacts
from harness.protocol.stand_in_gpu import _rounded_to_tf32, answer_for

REPOSITORY = Path(__file__).resolve().parents[2]
H200 = DeviceFacts("NVIDIA H200", "9.0", 132, 150 << 30, 60 << 20)
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="there is no Triton")

INTERPRETED = """
import json, sys
import torch
from harness.protocol.stand_in_gpu import interpret_triton
interpret_triton(json.loads(sys.argv[1]))
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])
@triton.jit
def product(a_ptr, b_ptr, c_ptr, n, PRECISION: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
    a, b = tl.load(a_ptr + rows * 16 + columns), tl.load(b_ptr + rows * 16 + columns)
    tl.store(c_ptr + rows * 16 + columns, tl.dot(a, b, input_precision=PRECISION) + BLOCK - 16)

def error(precision):
    a, b, c = torch.rand(16, 16), torch.rand(16, 16), torch.empty(16, 16)
    with torch.cuda.device(a.device):
        product[(1,)](a, b, c, 16, precision)
    return (c.double() - a.double() @ b.double()).abs().max().item()

print(json.dumps({each: error(each) for each in ("ieee", "tf32x3", "tf32")} | {"is_cuda": torch.ones(1).is_cuda}))
"""


@pytest.fixture
def answered():
    yield answer_for
    answer_for(None)


def test_every_usual_question_is_answered_from_the_facts_and_nothing_is_opened(answered):
    answered(H200.properties())
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert torch.cuda.get_device_capability() == (9, 0) and torch.cuda.get_device_name(0) == "NVIDIA H200"
    assert (device.multi_processor_count, device.total_memory, device.L2_cache_size) == (132, 150 << 30, 60 << 20)
    assert (device.warp_size, device.max_threads_per_multi_processor, device.regs_per_multiprocessor) == (32, 2048, 65536)
    assert device.shared_memory_per_multiprocessor == 228 << 10
    assert device.shared_memory_per_block_optin == 227 << 10 and device.shared_memory_per_block == 48 << 10
    assert not torch.cuda.is_initialized()
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1, device="cuda")


def test_without_facts_all_is_as_it_was(answered):
    before = torch.cuda.is_available, torch.cuda.get_device_properties
    answered(H200.properties())
    answered(H200.properties())
    answered(None)
    assert (torch.cuda.is_available, torch.cuda.get_device_properties) == before


@needs_triton
@pytest.mark.processes
def test_an_autotuned_kernel_takes_its_first_configuration_and_tf32_is_as_coarse_as_on_a_gpu(tmp_path):
    path = tmp_path / "interpreted.py"  # a process of its own, for what it sets stays
    path.write_text(INTERPRETED, encoding="utf-8")
    command = [sys.executable, str(path), json.dumps(H200.properties())]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    found = json.loads(ran.stdout)
    assert found["is_cuda"] is True
    assert found["ieee"] < 4e-6 and found["tf32x3"] < 4e-6
    assert 1e-5 < found["tf32"] < 1e-2


def test_rounding_to_tf32_keeps_ten_bits_of_mantissa_and_what_is_not_finite():
    exact, half = numpy.float32(1 + 2**-10), numpy.float32(1 + 2**-11)
    values = numpy.array([exact, half, -half, 1 + 2**-12, numpy.inf, 3.0e38], dtype=numpy.float32)
    rounded = _rounded_to_tf32(values)
    assert rounded[:5].tolist() == [exact, exact, -exact, 1.0, numpy.inf]
    assert abs(rounded[5] / values[5] - 1) < 2**-11
    assert numpy.isnan(_rounded_to_tf32(numpy.array([numpy.nan], dtype=numpy.float32))[0])
    halves = numpy.array([1 + 2**-10], dtype=numpy.float16)
    assert _rounded_to_tf32(halves) is halves
