"""What is written behind an output is found; what is not, is not."""

from __future__ import annotations

import gc

import pytest
import torch

from harness.protocol import cuda_driver
from harness.protocol.layout import plan
from harness.worker.outputs import Guard

pytestmark = pytest.mark.gpu


@pytest.fixture
def guard():
    gc.collect()  # nothing of an earlier test may be freed between planting and looking
    return Guard(torch.device("cuda:0"), 0)


def planted(guard, *shapes):
    guard.plant(plan([torch.empty(*shape) for shape in shapes], contiguous=True))
    return [torch.empty(*shape, device="cuda") for shape in shapes]


@pytest.mark.parametrize("shape", [(1,), (31, 31), (257, 257), (1000, 1000), (2000, 2001)])
def test_one_float_too_many_is_found(guard, shape):
    (output,) = planted(guard, shape)
    cuda_driver.fill_bytes(0, output.data_ptr(), 0, 4 * output.numel() + 4)
    written, spare = guard.broken([output])
    assert written == 4
    assert 4 <= spare < 512


def test_a_write_behind_the_second_output_is_found_too(guard):
    first, second = planted(guard, (31, 31), (5, 5))
    cuda_driver.fill_bytes(0, second.data_ptr() + 100, 0, 8)
    assert guard.broken([first, second]) == [8, 412]


def test_an_output_written_to_its_end_and_no_further_is_well(guard):
    outputs = planted(guard, (31, 31), (257, 257), (32, 32))
    for output in outputs:
        output.fill_(7.0)
    assert guard.broken(outputs) is None


def test_an_output_that_lies_elsewhere_says_nothing(guard):
    kept = torch.empty(31, 31, device="cuda")
    planted(guard, (31, 31))
    cuda_driver.fill_bytes(0, kept.data_ptr(), 0, 4 * kept.numel() + 4)
    assert guard.broken([kept]) is None


def test_a_temporary_that_lay_there_before_is_no_finding(guard):
    guard.plant(plan([torch.empty(257, 257)], contiguous=True))
    temporary = torch.empty(300, 300, dtype=torch.float64, device="cuda").fill_(1.0)
    del temporary
    assert guard.broken([torch.empty(257, 257, device="cuda")]) is None
