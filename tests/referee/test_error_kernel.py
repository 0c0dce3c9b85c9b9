"""One reading of an output says what PyTorch's operations say of it, to the bit where nothing is added up."""

from __future__ import annotations

import math

import pytest
import torch

from harness.accuracy.bounds import error_unit
from harness.referee.differences import _in_torch
from harness.referee.error_kernel import _repeating, error_kernel

DEVICE = torch.device("cuda:0")
UNIT = error_unit("float32")


def drawn(*shape, dtype=torch.float32, seed=3):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    expected = torch.randn(shape, dtype=torch.float64, device=DEVICE, generator=generator)
    noise = 1e-6 * torch.randn(shape, dtype=torch.float64, device=DEVICE, generator=generator)
    return (expected + noise).to(dtype), expected


def both(got, expected, scale):
    unit = error_unit(str(got.dtype).removeprefix("torch."))
    return error_kernel(DEVICE).figures(got, expected, scale, unit), _in_torch(got, expected, scale)


def assert_alike(own, other):
    assert own.max_u == other.max_u
    assert (own.not_finite, own.got, own.expected) == (other.not_finite, other.got, other.expected)
    assert own.square_sum == pytest.approx(other.square_sum, rel=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1,), (31,), (7, 513), (1000, 1003), (3, 5, 129)])
def test_it_agrees_with_pytorchs_operations(shape):
    got, expected = drawn(*shape)
    own, other = both(got, expected, expected.abs())
    assert_alike(own, other)
    assert own.position == other.position


@pytest.mark.gpu
def test_a_scale_for_each_row_or_for_everything_is_not_written_out():
    got, expected = drawn(100, 70)
    for dims in ((1,), (0, 1)):
        own, other = both(got, expected, expected.abs().amax(dim=dims, keepdim=True).expand_as(expected))
        assert_alike(own, other)
        assert own.position == other.position


@pytest.mark.gpu
def test_float64_outputs_are_read_as_such():
    got, expected = drawn(64, 64, dtype=torch.float64)
    assert_alike(*both(got, expected, expected.abs()))


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("got", "expected", "scale", "error", "not_finite"),
    [
        (math.nan, 1.0, 1.0, math.inf, 1), (math.inf, 1.0, 1.0, math.inf, 1), (math.nan, math.nan, 1.0, 0.0, 0),
        (math.inf, math.inf, 1.0, 0.0, 0), (-math.inf, math.inf, 1.0, math.inf, 0), (0.0, 0.0, 0.0, 0.0, 0),
        (1e-30, 0.0, 0.0, math.inf, 0), (1.0, math.nan, 1.0, math.inf, 0), (3.0, 1.0, 0.5, 4 / UNIT, 0),
    ],
)
def test_what_is_not_finite_or_has_no_scale_is_judged_alike(got, expected, scale, error, not_finite):
    values = [torch.full((5, 40), each, dtype=torch.float64, device=DEVICE) for each in (1.0, 1.0, 1.0)]
    for tensor, value in zip(values, (got, expected, scale)):
        tensor[3, 17] = value
    own, other = both(values[0].float(), values[1], values[2])
    assert own.max_u == error == other.max_u
    assert own.not_finite == not_finite == other.not_finite
    assert error == 0 or own.position == 3 * 40 + 17


@pytest.mark.gpu
def test_of_equal_errors_the_first_is_named():
    got = torch.ones(300, 300, device=DEVICE)
    got[17, 5] = got[200, 100] = 2.0
    ones = torch.ones(300, 300, dtype=torch.float64, device=DEVICE)
    assert error_kernel(DEVICE).figures(got, ones, ones, UNIT).position == 17 * 300 + 5


@pytest.mark.gpu
def test_a_layout_that_it_does_not_read_is_left_to_others():
    got, expected = drawn(8, 9)
    assert error_kernel(DEVICE).figures(got.t(), expected.t(), expected.t().abs(), UNIT) is None


def test_a_scale_is_taken_without_its_repetitions():
    whole = torch.rand(4, 5, 6)
    for dims, left, repeats in (((2,), (4, 5), 6), ((1, 2), (4,), 30), ((0, 1, 2), (), 120)):
        rows, found = _repeating(whole.amax(dim=dims, keepdim=True).expand_as(whole))
        assert tuple(rows.shape) == left and found == repeats
    assert _repeating(whole) == (whole, 1)
    assert _repeating(whole.transpose(0, 1))[0] is None
    assert _repeating(whole.amax(dim=0, keepdim=True).expand_as(whole))[0] is None
