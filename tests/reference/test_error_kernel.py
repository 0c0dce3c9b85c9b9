"""One reading of an output says what PyTorch's operations say of it, to the bit where nothing is added up."""

from __future__ import annotations

import math

import pytest
import torch

from harness.reference.accuracy.bounds import error_unit
from harness.reference.differences import _in_torch
from harness.reference.error_kernel import Compared, RawFigures, _repeating, error_kernel, widened, worst_of_blocks

DEVICE = torch.device("cuda:0")
UNIT = error_unit("float32")


def drawn(*shape, dtype=torch.float32, seed=3):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    expected = torch.randn(shape, dtype=torch.float64, device=DEVICE, generator=generator)
    noise = 1e-6 * torch.randn(shape, dtype=torch.float64, device=DEVICE, generator=generator)
    return (expected + noise).to(dtype), expected


def figures(*compared):
    (found,) = error_kernel(DEVICE).figures([Compared(*compared)])
    return found


def both(got, expected, scale):
    unit = error_unit(str(got.dtype).removeprefix("torch."))
    return figures(got, expected, scale, unit), _in_torch(got, expected, scale)


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
def test_what_is_expected_may_be_as_narrow_as_what_was_got():
    got, expected = drawn(70, 1003)
    narrow, rows = expected.float(), expected.float().abs().amax(dim=1, keepdim=True)
    beside = figures(got, narrow, widened(rows.expand_as(narrow)), UNIT)
    assert beside == figures(got, narrow.double(), rows.double().expand_as(narrow), UNIT)


def test_a_widened_scale_repeats_itself_as_it_did():
    rows = torch.rand(5, 1)
    wide = widened(rows.expand(5, 1000))
    assert wide.dtype == torch.float64 and wide.untyped_storage().nbytes() == 5 * 8
    assert torch.equal(wide, rows.double().expand(5, 1000))
    assert torch.equal(widened(rows.double()), rows.double())


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
    assert figures(got, ones, ones, UNIT).position == 17 * 300 + 5


@pytest.mark.gpu
def test_a_layout_that_it_does_not_read_is_left_to_others():
    got, expected = drawn(8, 9)
    assert figures(got.t(), expected.t(), expected.t().abs(), UNIT) is None


@pytest.mark.gpu
def test_many_outputs_at_once_have_the_figures_that_each_has_alone():
    compared = []
    for number, shape in enumerate([(40, 30), (1,), (700, 513), (8, 9), (300, 300)]):
        got, expected = drawn(*shape, dtype=torch.float64 if number == 1 else torch.float32, seed=number)
        if number == 3:
            got, expected = got.t(), expected.t()
        compared.append(Compared(got, expected, expected.abs(), UNIT))
    together = error_kernel(DEVICE).figures(compared)
    assert together == [error_kernel(DEVICE).figures([each])[0] for each in compared]
    assert [each is None for each in together] == [False, False, False, True, False]
    assert error_kernel(DEVICE).figures([]) == []


def test_the_worst_of_all_blocks_is_the_first_of_the_largest_errors_and_sums_are_of_all():
    found = torch.rand(3, 528, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found[..., 1] = torch.randperm(3 * 528).view(3, 528)
    found[:, 400:, :2] = torch.tensor([-1.0, 0.0])  # blocks that had no element to look at
    found[0, [7, 300], 0], found[1, [9, 90], 0] = 5.0, math.inf
    figures = worst_of_blocks(found)
    for of_blocks, own in zip(found, figures):
        errors = of_blocks[:, 0]
        worst = of_blocks[errors == errors.max()]
        max_u, position, got, expected, _, _ = worst[worst[:, 1].argmin()].tolist()
        squares, lost = of_blocks[:, 4:].sum(dim=0).tolist()
        assert own == RawFigures(max_u, squares, int(position), got, expected, int(lost))
    assert figures[0].max_u == 5.0 and figures[1].max_u == math.inf > figures[2].max_u


def test_a_scale_is_taken_without_its_repetitions():
    whole = torch.rand(4, 5, 6)
    for dims, left, repeats in (((2,), (4, 5), 6), ((1, 2), (4,), 30), ((0, 1, 2), (), 120)):
        rows, found = _repeating(whole.amax(dim=dims, keepdim=True).expand_as(whole))
        assert tuple(rows.shape) == left and found == repeats
    assert _repeating(whole) == (whole, 1)
    assert _repeating(whole.transpose(0, 1))[0] is None
    assert _repeating(whole.amax(dim=0, keepdim=True).expand_as(whole))[0] is None
