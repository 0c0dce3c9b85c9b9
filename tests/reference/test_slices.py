"""Slices of a call along its batch: found where they are right, and refused where the batch is mixed."""

from __future__ import annotations

import pytest
import torch

from harness.reference.slices import MEAN, ROWS, SUM, Slicing, find_slicing, largest_apart


def found(function, *tensors):
    def call(parts):
        made = function(*parts)
        return list(made) if isinstance(made, tuple) else [made]

    return find_slicing(call, tensors, call(tensors)), call


@pytest.mark.parametrize("function", [
    lambda x: torch.softmax(x, 1), lambda x: x.relu(), lambda x: (x.sum(1), x.argmax(1)), lambda x: x.cumsum(1),
], ids=["softmax", "relu", "two outputs", "cumsum"])
def test_a_batch_of_rows_is_cut_along_it(function):
    x = torch.randn(24, 40)
    slicing, call = found(function, x)
    assert (slicing.join, slicing.axes, slicing.length) == (ROWS, (0,), 24)
    for whole, joined in zip(call([x]), slicing.joined(call, [x], 5)):
        assert torch.equal(whole, joined)


def test_of_a_product_the_first_factor_is_cut_and_the_second_is_whole():
    slicing, _ = found(lambda a, b: a @ b, torch.randn(12, 7), torch.randn(7, 9))
    assert slicing.axes == (0, None)


def test_of_a_square_product_the_axis_that_gives_the_right_rows_is_found():
    a, b = torch.randn(16, 16), torch.randn(16, 16)
    assert found(lambda a, b: a @ b, a, b)[0].axes == (0, None)
    assert found(lambda a, b: a.T @ b, a, b)[0].axes == (1, None)


@pytest.mark.parametrize(("function", "join"), [
    (torch.nn.functional.mse_loss, MEAN), (lambda a, b: (a * b).sum(), SUM),
])
def test_a_sum_or_mean_over_a_batch_is_made_of_those_of_its_slices(function, join):
    a, b = torch.randn(2, 30, 8, dtype=torch.float64)  # a sum of either sign may come out close to nothing
    slicing, call = found(function, a, b)
    assert (slicing.join, slicing.axes) == (join, (0, 0))
    assert torch.allclose(slicing.joined(call, [a, b], 7)[0], call([a, b])[0], rtol=1e-6)


@pytest.mark.parametrize("function", [
    lambda x: x / x.norm(), lambda x: (x - x.mean(0)) / x.std(0), lambda x: x.flip(0), lambda x: x.view(24, -1) + 0,
    lambda x: x + 1e-2 * x.mean(),
], ids=["norm of all", "batch norm", "order", "a batch by its number", "a little of all"])
def test_what_mixes_the_batch_is_never_cut(function):
    assert found(function, torch.randn(24, 4, 3))[0] is None


def test_stretches_cover_the_batch_once():
    for length, count in [(10, 3), (3, 10), (7, 7), (1, 4)]:
        stretches = Slicing(length, (0,), ROWS).stretches(count)
        assert [at for each in stretches for at in each] == list(range(length))
        assert len(stretches) == min(length, count)


@pytest.mark.parametrize(("one", "other", "apart"), [
    ([1.0, 2.0], [1.0, 2.0], 0.0), ([1.0, 2.5], [1.0, 2.0], 0.25), ([float("nan")], [float("nan")], 0.0),
    ([float("nan"), 1.0], [1.0, 1.0], float("inf")), ([float("inf")], [float("inf")], 0.0), ([1.0], [0.0], float("inf")),
])
def test_distances_are_relative_to_the_largest_value(one, other, apart):
    assert largest_apart(torch.tensor(one), torch.tensor(other)) == pytest.approx(apart)


def test_whole_numbers_are_the_same_or_not():
    assert largest_apart(torch.tensor([1, 2]), torch.tensor([1, 2])) == 0.0
    assert largest_apart(torch.tensor([1, 2]), torch.tensor([1, 3])) == float("inf")
