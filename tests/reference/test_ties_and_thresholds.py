"""Ties and thresholds: what another honest evaluation has otherwise is right, and nothing beside that is."""

from __future__ import annotations

import pytest
import torch

from harness.reference.accuracy.classes import within
from harness.reference.error_figures import judge_outputs

@pytest.fixture
def judged(undescribed):
    """`judged(result, inputs, change)`: the verdict on what `change` makes of eager's outputs and the inputs."""

    def make(result, inputs, change):
        reference = undescribed(result, inputs)
        drawn = reference.draw()
        outputs = change([each.clone() for each in reference.eager(drawn)], drawn.tensors())
        return within(judge_outputs(reference, drawn, reference.truth(drawn), outputs, "fp32"))

    return make


TIED = "torch.relu(torch.randn(16, 64))"


def last_first(values, k):
    """The `k` largest, of equal ones those behind first."""
    order = values.flip(-1).argsort(dim=-1, descending=True, stable=True)[..., :k]
    return values.shape[-1] - 1 - order


def test_of_equal_values_any_index_is_right(judged):
    def behind(outputs, inputs):
        index = last_first(inputs[0], 50)
        assert not torch.equal(index, outputs[1])
        return [inputs[0].gather(-1, index), index]

    assert judged("torch.topk(x[0], 50)", TIED, behind)
    assert judged("tuple(torch.sort(x[0], descending=True))", TIED,
                  lambda outputs, inputs: [outputs[0], last_first(inputs[0], 64)])
    assert judged("torch.argsort(x[0], dim=-1, descending=True)", TIED,
                  lambda outputs, inputs: [last_first(inputs[0], 64)])


@pytest.mark.parametrize("change", [
    lambda index: (index + 1) % 64, lambda index: index.zero_(), lambda index: index - 64, lambda index: index + 64,
    lambda index: torch.cat([index[:, :-1], index[:, -2:-1]], dim=1),
], ids=["another", "one for all", "negative", "beyond", "one twice"])
def test_an_index_of_another_value_or_one_named_twice_is_not(judged, change):
    assert not judged("torch.topk(x[0], 50)", TIED, lambda outputs, inputs: [outputs[0], change(outputs[1])])


@pytest.mark.parametrize("result", [
    "torch.argmax(x[0], dim=1)", "torch.argmax(x[0], dim=1, keepdim=True)", "torch.max(x[0], dim=1)[1]",
    "torch.argmax(x[0].t().contiguous(), dim=0)",
])
def test_the_place_of_the_largest_is_that_of_any_of_the_largest(judged, result):
    inputs = "torch.randint(0, 4, (32, 64)).float()"

    def last(outputs, drawn):
        return [last_first(drawn[0], 1).reshape(outputs[0].shape)]

    assert judged(result, inputs, last)
    assert not judged(result, inputs, lambda outputs, drawn: [(-drawn[0]).argmax(1).reshape(outputs[0].shape)])


@pytest.mark.parametrize("cast", [".int()", ".to(torch.int32)", " + 0"])
def test_so_is_an_index_that_is_handed_on_in_another_form(judged, cast):
    inputs, result = "torch.randint(0, 4, (32, 64)).float()", f"torch.argmax(x[0], dim=1){cast}"
    assert judged(result, inputs, lambda outputs, drawn: [last_first(drawn[0], 1)[:, 0].to(outputs[0].dtype)])
    assert not judged(result, inputs, lambda outputs, drawn: [(-drawn[0]).argmax(1).to(outputs[0].dtype)])


def first_so_far(values, largest):
    """Of each place in a line the first that has the largest value up to there."""
    return torch.stack([
        (values[:, : place + 1] == largest[:, place, None]).int().argmax(1) for place in range(values.shape[1])
    ], dim=1)


def test_an_index_for_each_place_of_a_line_is_of_no_later_one(judged):
    inputs = "torch.randint(0, 4, (32, 64)).float()"

    def first(outputs, drawn):
        index = first_so_far(drawn[0], outputs[0])
        assert not torch.equal(index, outputs[1])
        return [outputs[0], index]

    def later(outputs, drawn):
        return [outputs[0], last_first(drawn[0], 1).expand(-1, 64)]

    assert judged("torch.cummax(x[0], dim=1)", inputs, first)
    assert not judged("torch.cummax(x[0], dim=1)", inputs, later)
    assert not judged("torch.cummax(x[0], dim=1)", inputs, lambda outputs, drawn: [outputs[0], (outputs[1] - 1).clamp(min=0)])


def test_the_place_of_the_largest_of_all_counts_by_its_value_too(judged):
    inputs = "torch.tensor([[0., 5., 2.], [5., 1., 5.]])"
    assert judged("torch.argmax(x[0])", inputs, lambda outputs, drawn: [torch.tensor(5)])
    assert not judged("torch.argmax(x[0])", inputs, lambda outputs, drawn: [torch.tensor(4)])


def test_sums_that_are_equal_but_for_rounding_are_a_tie(judged):
    """Two columns are the same; which sum is the larger is a matter of their order."""
    inputs = "torch.rand(32, 200), torch.rand(200, 5).repeat(1, 2)"

    def other(outputs, drawn):
        return [(outputs[0] + 5) % 10]

    assert judged("torch.argmax(x[0] @ x[1], dim=1)", inputs, other)
    assert not judged("torch.argmax(x[0] @ x[1], dim=1)", inputs, lambda outputs, drawn: [(outputs[0] + 1) % 10])


AT_THE_THRESHOLD = "torch.cat([torch.rand(1000), torch.full((2,), 0.5)]), torch.cat([torch.rand(1000), torch.full((2,), 0.5)])"


@pytest.mark.parametrize("result", ["x[0] * x[1] > 0.25", "torch.ge(x[0] * x[1], 0.25)", "(x[0] * x[1] > 0.25) & (x[0] > 0.1)"])
def test_a_truth_about_a_value_at_the_threshold_is_either(judged, result):
    def turned(outputs, drawn):
        outputs[0][-2:] = ~outputs[0][-2:]
        return outputs

    assert judged(result, AT_THE_THRESHOLD, turned)
    for place in (0, 500):
        assert not judged(result, AT_THE_THRESHOLD, lambda outputs, drawn, place=place: [
            torch.where(torch.arange(1002) == place, ~outputs[0], outputs[0])
        ])


QUANTISED = "torch.round(x[0] / (x[0].abs().max() / 127)).clamp(-127, 127)"
# A hundred of them lie in the middle between two steps, where the last bit decides.
HALVES = "torch.cat([torch.randn(50000).clamp(-3, 3), torch.arange(100) + 0.5, torch.tensor([127.])]) * 1.1"


def by_the_inverse(outputs, drawn):
    (x,) = drawn
    steps = torch.round(x * (1 / (x.abs().max() / 127))).clamp(-127, 127)
    return [(steps * (x.abs().max() / 127) if outputs[0].is_floating_point() else steps).to(outputs[0].dtype)]


@pytest.mark.parametrize("result", [f"{QUANTISED}.to(torch.int8)", f"{QUANTISED} * (x[0].abs().max() / 127)"])
def test_a_number_in_the_middle_between_two_steps_may_be_rounded_to_either(judged, result):
    def one_of_them_otherwise(outputs, drawn):
        outputs = by_the_inverse(outputs, drawn)
        step = 1 if not outputs[0].is_floating_point() else drawn[0].abs().max() / 127
        place = 50004  # 4.5, which is rounded to 4
        outputs[0][place] += step if outputs[0][place] < 4.2 * step else -step
        return outputs

    assert judged(result, HALVES, by_the_inverse)
    assert judged(result, HALVES, one_of_them_otherwise)


@pytest.mark.parametrize("result", [f"{QUANTISED}.to(torch.int8)", f"{QUANTISED} * (x[0].abs().max() / 127)"])
def test_a_number_elsewhere_may_not(judged, result):
    def a_step_more(outputs, drawn):
        outputs[0][7] += 1 if not outputs[0].is_floating_point() else drawn[0].abs().max() / 127
        return outputs

    inputs = "torch.cat([torch.tensor([127.]), torch.arange(50) + 0.2])"
    assert not judged(result, inputs, a_step_more)


CUT = "x[0] / (x[0].abs().max() / 127)"
# A hundred of them are whole numbers of steps but for rounding.
WHOLE = "torch.cat([torch.randn(50000).clamp(-3, 3), torch.arange(100.), torch.tensor([127.])]) * 1.1"


@pytest.mark.parametrize("cast", [".to(torch.int8)", ".int()", ".type(torch.int16)", ".char()"])
def test_a_cast_to_whole_numbers_may_cut_to_either_there_and_nowhere_else(judged, cast):
    def by_the_inverse_cut(outputs, drawn):
        cut = (drawn[0] * (1 / (drawn[0].abs().max() / 127))).to(outputs[0].dtype)
        assert not torch.equal(cut, outputs[0])
        return [cut]

    def one_step_more(outputs, drawn):
        outputs[0][7] += 1
        return outputs

    assert judged(f"({CUT}){cast}", WHOLE, by_the_inverse_cut)
    assert not judged(f"({CUT}){cast}", WHOLE, one_step_more)
    assert not judged(f"torch.round({CUT}){cast}", WHOLE, one_step_more)


@pytest.mark.parametrize("off", [2, -2])
def test_what_fell_to_another_side_before_a_cast_excuses_nothing_else_of_its_row(judged, off):
    """Some of the halves are rounded otherwise in float64, so that a whole step lies between the two before the cast."""
    def some_elsewhere(outputs, drawn):
        steps = torch.round(drawn[0] / (drawn[0].abs().max() / 127))[:50000]
        places = ((steps > 4) & (steps % 2 == 1)).nonzero()[:16, 0]
        assert len(places) == 16
        outputs[0][places] += off
        return outputs

    result = f"(torch.round({CUT}) * 0.5).to(torch.int32)"
    inputs = HALVES.replace("torch.randn(50000).clamp(-3, 3)", "(20 * torch.randn(50000)).clamp(-99, 99)")
    assert judged(result, inputs, lambda outputs, drawn: outputs)
    assert not judged(result, inputs, some_elsewhere)


def test_where_more_than_a_few_differ_nothing_is_looked_for(judged, monkeypatch):
    from harness.reference import ties_and_thresholds

    monkeypatch.setattr(ties_and_thresholds, "_at_moved_thresholds", lambda *_: pytest.fail("looked for"))
    assert not judged("x[0] > 0.5", "torch.rand(1000)", lambda outputs, drawn: [~outputs[0]])


def test_a_cast_to_complex_numbers_or_to_truths_is_no_threshold():
    from harness.reference.ties_and_thresholds import _JUMPS, _Watched

    given = torch.rand(3)
    with _Watched(_JUMPS) as seen:
        given.to(torch.complex64), given.to(torch.bool), given.to(torch.float64), given.to(torch.int8)
    assert len(seen.calls) == 1
