"""The truth of a reference: float64 on the same inputs where there is one, eager else, and the scale of its errors."""

from __future__ import annotations

import pytest
import torch

from harness.model.problem import AccuracyRule
from harness.reference.inputs.families import PRODUCT_FAMILIES


def test_the_truth_is_float64_on_the_same_inputs(reference_of, returning):
    reference = reference_of(returning())
    inputs = reference.draw()
    truth = reference.truth(inputs)
    a, b = inputs.arguments()
    assert reference.truth_name == "float64"
    assert truth.outputs[0].dtype == torch.float64
    assert torch.equal(truth.outputs[0], a.double() @ b.double())
    assert truth.eager[0].dtype == torch.float32


def test_the_error_scale_of_a_product_is_the_product_of_absolute_inputs(reference_of, returning):
    reference = reference_of(returning())
    signs = next(family for family in PRODUCT_FAMILIES if family.name == "signs")
    inputs = reference.draw(signs)
    a, b = inputs.arguments()
    scale = reference.truth(inputs).scales[0]
    assert torch.allclose(scale, a.double().abs() @ b.double().abs())
    assert bool((a < 0).any())


def test_otherwise_it_is_the_largest_value_along_the_last_dimension(reference_of, returning):
    reference = reference_of(returning(), sizes={"M": 40}, accuracy=AccuracyRule())
    truth = reference.truth(reference.draw())
    assert torch.equal(truth.scales[0], truth.outputs[0].abs().amax(-1, keepdim=True).expand(40, 40))


@pytest.mark.parametrize(("source", "dims"), [
    ("torch.matmul(A, B)", (-2, -1)), ("torch.matmul(A, B).sum(1)", (-1,)),
    ("torch.matmul(A, B)[:, :1].repeat(3, 1)", (-2, -1)), ("torch.stack([torch.matmul(A, B)] * 3)", (-2, -1)),
])
def test_short_rows_are_joined_until_the_scale_is_over_thirty_two_elements(reference_of, source, dims, returning):
    reference = reference_of(returning(source), sizes={"M": 16}, accuracy=AccuracyRule())
    truth = reference.truth(reference.draw())
    expected = truth.outputs[0].abs().amax(dims, keepdim=True).expand_as(truth.outputs[0])
    assert torch.equal(truth.scales[0], expected)


def test_an_infinite_element_does_not_excuse_its_row(reference_of, returning):
    source = returning("torch.matmul(A, B).index_fill(1, torch.tensor([0]), float('inf'))")
    reference = reference_of(source, sizes={"M": 40}, accuracy=AccuracyRule())
    assert reference.truth(reference.draw()).scales[0].isfinite().all()


@pytest.mark.parametrize("result", [
    "torch.matmul(A.half(), B.half())", "torch.matmul(A.float(), B.float())", "torch.matmul(A.half(), B.half()).to(A.dtype)",
    "torch.matmul(A.bfloat16(), B.to(dtype=torch.bfloat16)).float()",
    "torch.matmul(A.type(torch.half), B.half()).sum(1, dtype=torch.float32)",
    "torch.matmul(A, B).half() + torch.zeros(M, dtype=torch.half)",
])
def test_a_model_that_casts_inside_itself_is_run_without_its_casts(reference_of, result, returning):
    reference = reference_of(returning(result))
    assert reference.truth_name == "float64"
    inputs = reference.draw()
    truth = reference.truth(inputs)
    a, b = (each.double() for each in inputs.arguments())
    assert torch.allclose(truth.outputs[0], (a @ b).sum(1) if ".sum(" in result else a @ b, rtol=1e-12, atol=0)
    assert truth.eager[0].dtype == reference.eager(inputs)[0].dtype


@pytest.mark.parametrize("result", [
    "torch.matmul(A, B).half().view(torch.int16)", "torch.matmul(A, B).half().view(torch.int16).view(torch.half)",
])
def test_a_model_that_looks_at_the_bytes_of_its_casts_has_strict_eager_for_truth(reference_of, result, returning):
    reference = reference_of(returning(result))
    assert reference.truth_name == "eager"
    inputs = reference.draw()
    truth = reference.truth(inputs, with_eager=False)
    assert torch.equal(truth.outputs[0].double(), truth.eager[0].double())


def test_a_state_of_zeros_that_the_model_makes_itself_is_no_cast(reference_of, returning):
    reference = reference_of(returning("torch.cat([torch.matmul(A, B), torch.zeros(1, M)]) + torch.tensor(0.5)"))
    assert reference.truth_name == "float64"


def test_a_model_that_has_no_float64_has_strict_eager_for_truth(reference_of, returning):
    source = returning("refuse(A) + torch.matmul(A, B).sum()") + (
        "\n\ndef refuse(x):\n    if x.dtype == torch.float64:\n"
        "        raise RuntimeError('not implemented for Double')\n"
        "    return x\n"
    )
    assert reference_of(source).truth_name == "eager"


def test_integer_outputs_are_exact_and_have_no_scale(reference_of, returning):
    source = returning("(torch.matmul(A, B), torch.argmax(A, dim=1))")
    reference = reference_of(source, accuracy=AccuracyRule())
    truth = reference.truth(reference.draw(), with_eager=False)
    assert truth.outputs[1].dtype == torch.int64
    assert truth.scales[1] is None
    assert reference.truth_name == "float64"


def test_a_model_of_integers_only_is_judged_by_eager(reference_of, returning):
    reference = reference_of(returning("torch.argmax(A, dim=1)"), accuracy=AccuracyRule())
    assert reference.truth_name == "eager"
    assert reference.truth(reference.draw()).outputs[0].dtype == torch.int64


def test_plain_values_among_the_outputs_are_kept(reference_of, returning):
    truth = (reference := reference_of(returning("(torch.matmul(A, B), A.shape[0], 'done')"))).truth(reference.draw())
    assert truth.values == [16, "done"]


def test_with_gradients_a_draw_holds_a_vector_for_each_floating_output_and_the_truth_the_gradients(reference_of, returning):
    rule = AccuracyRule(scale="abs_inputs", contracted=(1, 0))
    reference = reference_of(returning(), mode="forward_backward", accuracy=rule)
    inputs = reference.draw()
    (a, b), (vector,) = inputs.arguments()
    assert (a.shape, b.shape, vector.shape) == ((16, 8), (8, 16), (16, 16))
    truth = reference.truth(inputs)
    a, b, vector = a.double(), b.double(), vector.double()
    for found, expected in zip(truth.outputs, (a @ b, vector @ b.t(), a.t() @ vector)):
        assert torch.allclose(found, expected, rtol=1e-12, atol=0)
    for scale, expected in zip(truth.scales, (a @ b, vector.abs() @ b.t(), a.t() @ vector.abs())):
        assert torch.allclose(scale, expected, rtol=1e-12, atol=0)
    assert len(truth.outputs) == len(truth.eager) == 3


def test_truths_of_several_sets_are_those_of_each_though_some_inputs_are_negative(reference_of):
    reference = reference_of()
    sets = [reference.draw(family) for family in reference.families for _ in range(2)]
    for own, inputs in zip(reference.truths(sets), sets):
        alone = reference.truth(inputs)
        assert all(map(torch.equal, own.outputs + own.scales + own.eager, alone.outputs + alone.scales + alone.eager))
        without_signs = all(bool((each >= 0).all()) for each in inputs.tensors())
        assert torch.equal(own.scales[0], own.outputs[0].abs()) is without_signs
    assert reference.truths([]) == []


def test_a_model_that_keeps_its_outputs_in_a_buffer_does_not_write_over_the_truths_before(reference_of, returning):
    source = returning("torch.matmul(A, B, out=KEPT.setdefault(A.dtype, torch.empty(M, M, dtype=A.dtype)))")
    reference = reference_of(source + "\nKEPT = {}\n", accuracy=AccuracyRule())
    sets = [reference.draw() for _ in range(3)]
    for truth, inputs in zip(reference.truths(sets, with_eager=False), sets):
        a, b = inputs.arguments()
        assert torch.equal(truth.outputs[0], a.double() @ b.double())


@pytest.mark.parametrize(("source", "elements"), [
    ("torch.matmul(A, B)", 2 * 16 * 16), ("torch.matmul(A, B)[:, :1]", 16 * 16 + 16), ("torch.argmax(A, dim=1)", 16),
])
def test_a_truth_takes_what_its_outputs_are_views_of_and_its_scales(reference_of, source, elements, returning):
    reference = reference_of(returning(source))
    assert reference.truth_bytes is None
    truth = reference.truth(reference.draw(), with_eager=False)
    assert reference.truth_bytes == 8 * elements
    assert (reference.truth_name == "eager") is bool(truth.eager)
