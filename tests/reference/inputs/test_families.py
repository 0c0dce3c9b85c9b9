"""Families of inputs for a product: what each one changes, and what it must leave alone."""

from __future__ import annotations

import pytest
import torch

from harness.reference.inputs.families import GIVEN, PRODUCT_FAMILIES, SPREAD_BINADES, families_for, one_hot_along

BY_NAME = {family.name: family for family in PRODUCT_FAMILIES}


@pytest.fixture
def triangles():
    """Two lower triangular factors of 40 × 40, as in tril_matmul: contracted over axis 1 and axis 0."""
    torch.manual_seed(1)
    return [torch.tril(torch.rand(40, 40) + 0.01) for _ in range(2)]


@pytest.mark.parametrize("family", PRODUCT_FAMILIES, ids=lambda family: family.name)
def test_every_family_keeps_zeros_shapes_and_types(family, triangles):
    before = [tensor.clone() for tensor in triangles]
    changed = family.transform(triangles, (1, 0))
    for tensor, original in zip(changed, before):
        assert tensor.shape == original.shape
        assert tensor.dtype == original.dtype
        assert bool((tensor[original == 0] == 0).all())
        assert bool(tensor.isfinite().all())
    assert all(torch.equal(tensor, kept) for tensor, kept in zip(triangles, before)), "it wrote into what it was given"


def test_random_signs_change_signs_only_and_about_half_of_them(triangles):
    for tensor, original in zip(BY_NAME["signs"].transform(triangles, (1, 0)), triangles):
        assert torch.equal(tensor.abs(), original)
        assert not bool(tensor[original == 0].signbit().any())
        negative = (tensor < 0).sum() / (original != 0).sum()
        assert 0.4 < negative < 0.6


def test_spread_multiplies_by_powers_of_two_over_all_the_binades(triangles):
    for tensor, original in zip(BY_NAME["spread"].transform(triangles, (1, 0)), triangles):
        own = original != 0
        ratios = tensor[own] / original[own]
        mantissas, exponents = torch.frexp(ratios)
        assert bool((mantissas == 0.5).all())
        assert int(exponents.min()) - 1 >= -SPREAD_BINADES
        assert int(exponents.max()) - 1 <= SPREAD_BINADES
        assert int(exponents.max() - exponents.min()) > SPREAD_BINADES


def test_every_product_of_spread_inputs_stays_within_sixty_binades():
    smallest_uniform = 24  # torch.rand draws multiples of 2^-24
    assert 2 * SPREAD_BINADES + smallest_uniform <= 64


@pytest.mark.parametrize("axis", [0, 1])
def test_one_hot_has_exactly_one_one_in_every_line_that_is_not_all_zero(axis):
    torch.manual_seed(2)
    matrix = torch.rand(30, 50) * (torch.rand(30, 50) > 0.7)
    matrix[3], matrix[:, 4] = 0, 0
    hot = one_hot_along(matrix, axis)
    assert set(hot.unique().tolist()) == {0.0, 1.0}
    lines = (matrix != 0).any(dim=axis)
    assert torch.equal(hot.sum(dim=axis), lines.to(hot.dtype))
    assert bool((hot[matrix == 0] == 0).all())


def test_one_hot_does_not_always_choose_the_same_place():
    matrix = torch.ones(200, 200)
    assert len(one_hot_along(matrix, 0).argmax(dim=0).unique()) > 100


@pytest.mark.parametrize(("contracted", "product"), [((1, 0), lambda a, b: a @ b), ((0, 0), lambda a, b: a.T @ b)])
@pytest.mark.parametrize("name", ["one-hot last", "one-hot first", "identity"])
def test_in_exact_families_every_element_of_the_product_is_one_input_element_or_zero(name, contracted, product):
    torch.manual_seed(3)
    shapes = [(20, 20), (20, 20)]
    tensors = [torch.rand(shape) for shape in shapes]
    family = BY_NAME[name]
    assert family.exact
    left, right = family.transform(tensors, contracted)
    result = product(left, right)
    assert torch.equal(result.double(), product(left.double(), right.double()))
    kept = right if name == "one-hot first" else left
    assert set(result.flatten().tolist()) <= set(kept.flatten().tolist()) | {0.0}


def test_the_rounding_families_are_not_called_exact():
    assert not any(BY_NAME[name].exact for name in ("as given", "signs", "spread"))


def test_identity_works_for_factors_that_are_not_square():
    tensors = [torch.rand(5, 7), torch.rand(7, 3)]
    _, last = BY_NAME["identity"].transform(tensors, (1, 0))
    assert torch.equal(last, torch.eye(7, 3))


def test_a_single_element_survives_every_family():
    for family in PRODUCT_FAMILIES:
        left, right = family.transform([torch.full((1, 1), 0.5), torch.full((1, 1), 0.25)], (1, 0))
        assert left.shape == right.shape == (1, 1)


def test_only_products_have_families():
    assert families_for((1, 0)) == PRODUCT_FAMILIES
    assert families_for(None) == (GIVEN,)
