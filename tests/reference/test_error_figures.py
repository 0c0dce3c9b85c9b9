"""What a launch's differences amount to: within its bounds, or evidence; eager's own error only where it is needed."""

from __future__ import annotations

import pytest

from harness.model.formulas import Formula
from harness.model.problem import AccuracyRule
from harness.reference.error_figures import judge_outputs


def judged(reference, change, *, with_eager=True, precision_class="fp32"):
    inputs = reference.draw()
    truth = reference.truth(inputs, with_eager=with_eager)
    outputs = [change(tensor) for tensor in reference.eager(inputs)]
    return judge_outputs(reference, inputs, truth, outputs, precision_class)


def test_eager_itself_is_within_its_own_bounds(reference_of):
    figures = judged(reference_of(), lambda tensor: tensor)
    assert figures.max_u == pytest.approx(figures.eager_max_u)
    assert figures.max_u < figures.bounds.max_u


def test_the_judge_says_where_at_which_sizes_and_against_what_bound(reference_of):
    figures = judged(reference_of(sizes={"M": 8}), lambda tensor: tensor + (tensor == tensor.max()) * 1.0)
    assert figures.sizes == "M=8"
    assert figures.family == "as given"
    assert figures.got == pytest.approx(figures.expected + 1, rel=1e-5)
    assert figures.max_u > figures.bounds.max_u


def test_without_eager_the_verdict_is_the_same_and_eager_is_computed_only_when_needed(reference_of):
    reference = reference_of()
    calls = []
    plain = type(reference).truth
    reference.truth = lambda inputs, **named: calls.append(named) or plain(reference, inputs, **named)
    close = judged(reference, lambda tensor: tensor, with_eager=False)
    assert close.eager_max_u == 0
    assert len(calls) == 1
    far = judged(reference, lambda tensor: tensor + 1, with_eager=False)
    assert far.eager_max_u > 0
    assert calls == [{"with_eager": False}] * 2  # and eager alone, not the truth once more


@pytest.mark.parametrize(("scale", "root"), [("abs_inputs", False), ("row_max", True)])
def test_random_signs_have_no_allowance_for_long_sums_beside_the_sum_of_magnitudes(reference_of, scale, root):
    """Without it 1 % of the terms may not be narrower; beside the result itself honest sums would be refused."""
    rule = AccuracyRule(scale=scale, terms=Formula("M"), contracted=(1, 0))
    reference = reference_of(sizes={"M": 1024}, accuracy=rule)
    signs = next(family for family in reference.families if family.name == "signs")
    for family, has_root in ((signs, root), (reference.families[0], True)):
        inputs = reference.draw(family)
        truth = reference.truth(inputs)
        figures = judge_outputs(reference, inputs, truth, truth.eager, "fp32")
        without = 4 * figures.eager_max_u + 8
        assert without < 64.0 or family is not signs or scale == "row_max"
        assert figures.bounds.max_u == pytest.approx(max(without, 64.0) if has_root else without)
