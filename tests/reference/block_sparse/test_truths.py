"""The truth of a reference, found without the blocks of zeros that its inputs have."""

from __future__ import annotations

import pytest
import torch

from harness.model.problem import AccuracyRule
from harness.reference.inputs.families import PRODUCT_FAMILIES

pytestmark = pytest.mark.usefixtures("one_thread")

SIZE = 512
TRIANGLES = """
import torch
M = 16


class Model(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))


def get_inputs():
    return [torch.tril(torch.rand(M, M)), torch.tril(torch.rand(M, M))]
"""
RULE = AccuracyRule(scale="abs_inputs", contracted=(1, 0))


def test_the_truth_and_its_error_scale_are_found_without_the_zeros(reference_of, small_counts, watched):
    reference = reference_of(TRIANGLES, {"M": SIZE}, accuracy=RULE)
    assert reference.longest_sum == SIZE
    for family in PRODUCT_FAMILIES:
        inputs = reference.draw(family)
        with watched() as seen:
            truth = reference.truth(inputs, with_eager=False)
        assert "aten.addmm_.default" in seen.names and "aten.mm.default" not in seen.names, family.name
        a, b = (each.double() for each in inputs.arguments())
        scale = torch.tril(a.abs() @ b.abs())
        assert bool(((truth.outputs[0] - torch.tril(a @ b)).abs() <= 1e-13 * scale).all()), family.name
        assert bool(((truth.scales[0] - scale).abs() <= 1e-13 * scale).all()), family.name


@pytest.mark.parametrize(("source", "size"), [
    (TRIANGLES, 256), (TRIANGLES.replace("[torch.tril(torch.rand(M, M))", "[torch.rand(M, M)")
                       .replace(", torch.tril(torch.rand(M, M))", ", torch.rand(M, M)"), SIZE),
    (TRIANGLES.replace("torch.matmul(A, B)", "A + B"), SIZE),
    (TRIANGLES.replace("torch.rand(M, M)", "torch.rand(M, M, dtype=torch.float64)"), SIZE),
], ids=["small", "full", "no product", "float64"])
def test_the_truth_of_any_other_problem_is_pytorchs_own(reference_of, source, size, small_counts, watched):
    reference = reference_of(source, {"M": size}, accuracy=AccuracyRule())
    inputs = reference.draw()
    with watched() as seen:
        truth = reference.truth(inputs, with_eager=False)
    assert "aten.addmm_.default" not in seen.names
    a, b = (each.double() for each in inputs.arguments())
    assert torch.equal(truth.outputs[0], torch.tril(a + b if "A + B" in source else a @ b))


def test_gradients_are_found_without_the_zeros_too(reference_of, small_counts, watched):
    reference = reference_of(TRIANGLES, {"M": SIZE}, mode="forward_backward", accuracy=RULE)
    inputs = reference.draw()
    with watched() as seen:
        truth = reference.truth(inputs, with_eager=False)
    assert "aten.addmm_.default" in seen.names and "aten.mm.default" not in seen.names
    (a, b), (vector,) = inputs.arguments()
    a, b, vector = a.double(), b.double(), vector.double().tril()
    for found, expected in zip(truth.outputs, (torch.tril(a @ b), vector @ b.t(), a.t() @ vector), strict=True):
        assert torch.allclose(found, expected, rtol=0, atol=1e-11)


def test_a_draw_that_holds_more_than_the_first_has_its_truth_all_the_same(reference_of, small_counts, watched):
    now_and_then = TRIANGLES.replace("M = 16\n", "M = 16\ndraws = 0\n").replace(
        "def get_inputs():\n", "def get_inputs():\n    global draws\n    draws += 1\n"
    ).replace("torch.tril(torch.rand(M, M))]", "torch.tril(torch.rand(M, M), M if draws > 6 else 0)]")
    reference = reference_of(now_and_then, {"M": SIZE}, accuracy=RULE)
    sets = [reference.draw() for _ in range(4)]
    full = [bool(each.arguments()[1].triu(1).any()) for each in sets]
    assert not full[0] and full[-1]
    for inputs, truth in zip(sets, reference.truths(sets, with_eager=False)):
        a, b = (each.double() for each in inputs.arguments())
        assert torch.allclose(truth.outputs[0], torch.tril(a @ b), rtol=1e-12, atol=0)
    with watched() as seen:
        reference.truth(sets[0], with_eager=False)
    assert "aten.mm.default" in seen.names, "no later draw is taken for like the first"
