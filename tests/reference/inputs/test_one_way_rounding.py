"""Inputs that narrowing rounds one way: what is changed of them, and that TF32 then shows where averages hid it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from harness.reference.inputs.families import GIVEN
from harness.reference.inputs.one_way_rounding import NAME, can_be_narrowed, one_way_family, rounded_one_way, to_tf32
from harness.reference.inputs.sets import draw_set

CPU = torch.device("cpu")


def cost_u(call, inputs):
    """By how many u inputs in TF32 change a scalar."""
    exact = call(*[each.double() if each.is_floating_point() else each for each in inputs])
    return float((call(*map(to_tf32, inputs)).double() - exact).abs() / exact.abs()) * 2**24


def mse(a, b):
    return ((a - b) ** 2).mean()


@pytest.mark.parametrize(("call", "get_inputs", "least_u"), [
    (mse, lambda: [torch.rand(64, 1024), torch.rand(64, 1024)], 3000),
    (F.cross_entropy, lambda: [torch.rand(2048, 256), torch.randint(0, 256, (2048,))], 150),
    (lambda a, p, n: (1 + (a - p).norm(dim=1) - (a - n).norm(dim=1)).clamp(min=0).mean(),
     lambda: [torch.rand(256, 512) for _ in range(3)], 3000),
    (lambda p, t: (1 - p * t).clamp(min=0).mean(),
     lambda: [torch.rand(256, 512), torch.randint(0, 2, (512,)).float() * 2 - 1], 500),
], ids=["mse", "cross entropy", "triplet", "hinge"])
def test_what_a_mean_hides_of_tf32_shows_by_hundreds_of_u(call, get_inputs, least_u):
    family = one_way_family(call)
    shown = [draw_set(get_inputs, CPU, family, seed=seed) for seed in range(3)]
    assert min(cost_u(call, each.tensors()) for each in shown) > least_u
    assert min(cost_u(call, draw_set(get_inputs, CPU, GIVEN, seed=seed).tensors()) for seed in range(3)) < least_u / 10


def test_numbers_change_by_less_than_a_hundredth_and_keep_sign_and_zeros():
    family = one_way_family(mse)
    given, other = (
        draw_set(lambda: [torch.randn(40, 50) * (torch.rand(40, 50) > 0.2), torch.randn(40, 50)], CPU, each, seed=3)
        for each in (GIVEN, family)
    )
    for own, changed in zip(given.tensors(), other.tensors()):
        assert not torch.equal(own, changed)
        assert bool(((own - changed).abs() <= 2.0**-7 * own.abs()).all())
        assert torch.equal(own.sign(), changed.sign())


def test_each_number_is_rounded_towards_zero_or_not_at_all():
    tensor = torch.randn(1000)
    pull = torch.randn(1000)
    changed = rounded_one_way(tensor, pull)
    lost = to_tf32(changed).abs() - changed.abs()
    assert bool((pull > 0).any())
    assert bool((lost[pull > 0] <= 0).all()) and bool((lost[pull > 0] < 0).any())
    assert bool((lost[pull <= 0] == 0).all())
    changed = rounded_one_way(tensor, None)
    assert bool((to_tf32(changed).abs() <= changed.abs()).all())


@pytest.mark.parametrize("tensor", [
    torch.arange(5000.0), torch.ones(3), torch.randint(0, 9, (5,)), torch.rand(4).half(), torch.rand(4).double(),
    torch.rand(4) > 0.5,
], ids=lambda tensor: str(tensor.dtype))
def test_whole_numbers_and_other_types_stay_as_they_are(tensor):
    assert not can_be_narrowed(tensor)
    assert torch.equal(rounded_one_way(tensor, torch.ones(tensor.shape)), tensor)


def test_infinities_and_strides_are_kept():
    tensor = torch.rand(6, 4).t()[:, ::2]
    tensor[1, 1] = float("inf")
    changed = rounded_one_way(tensor, torch.randn(4, 3))
    assert changed.stride() == tensor.stride() and changed[1, 1] == float("inf")


def test_the_same_seed_gives_the_same_inputs():
    family = one_way_family(mse)
    first, again = (draw_set(lambda: [torch.rand(30), torch.rand(30)], CPU, family, seed=9) for _ in range(2))
    assert first.family.name == NAME and torch.equal(first.region, again.region)


def test_a_reference_without_a_gradient_has_all_its_inputs_rounded_towards_zero():
    drawn = draw_set(lambda: [torch.rand(100)], CPU, one_way_family(lambda x: x.round().sum()), seed=1)
    (tensor,) = drawn.tensors()
    assert bool((to_tf32(tensor) <= tensor).all()) and bool((to_tf32(tensor) < tensor).any())


def test_tf32_is_rounded_to_nearest_with_ties_to_even():
    one = 1 + torch.tensor([2.0**-11, 3 * 2.0**-11, 2.0**-12, 2.0**-10])
    assert to_tf32(one).tolist() == [1, 1 + 2.0**-9, 1, 1 + 2.0**-10]
    assert to_tf32(torch.tensor([float("nan"), float("inf")])).isinf().tolist() == [False, True]
