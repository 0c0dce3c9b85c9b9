"""What is looked for in a reference: what shows nothing is told, what cannot be judged is refused in a sentence."""

from __future__ import annotations

import math

import pytest
import torch

from harness.model.errors import InputError
from harness.model.problem import AccuracyRule
from harness.model.problem_notes import ProblemNote
from harness.reference.expected import Truths
from harness.reference.reference_checks import distance_u, sampled

MODEL = """
import torch
M = 64
{before}

class Model(torch.nn.Module):
    def __init__(self{parameters}):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        return {result}


def get_inputs():
    return {inputs}


def get_init_inputs():
    return {init_inputs}
"""
PLAIN = {
    "before": "", "parameters": "", "init": "pass", "arguments": "x", "result": "x + 1", "inputs": "[torch.rand(M, M)]",
    "init_inputs": "[]",
}


@pytest.fixture
def made(reference_of):
    """`made(**parts)`: a reference whose source differs from a plain one in these parts."""

    def make(mode="forward", **parts):
        return reference_of(MODEL.format(**PLAIN | parts), {}, accuracy=AccuracyRule(), mode=mode)

    return make


def test_an_ordinary_reference_has_no_note_and_its_calls_are_alike(made):
    reference = made()
    assert (reference.notes, reference.call_to_call_u, reference.moved_state) == ([], (0.0,), ())


@pytest.mark.parametrize("result", [
    "torch.relu(x - 9)", "torch.softmax(x[:, :1], dim=1)", "(x - x.mean(1, keepdim=True)).mean(1) * 0 + 5",
    "x.new_tensor([1.0, float('nan'), float('inf')]) * 1", "x.int()",
])
def test_an_output_that_is_the_same_for_all_draws_is_told(made, result):
    assert made(result=result).notes == [ProblemNote.SAME_OUTPUT]


def test_an_output_that_differs_by_its_rounding_alone_is_the_same_for_all_draws(made):
    reference = made(result="torch.softmax(x, dim=1).sum(1)")
    assert reference.notes == [ProblemNote.SAME_OUTPUT]


def test_an_output_is_the_same_for_all_draws_by_the_scale_that_it_is_judged_by(made):
    masked = "x.masked_fill(torch.ones(M, M, dtype=torch.bool).triu(1), -1e9)"
    assert made(result=masked).notes == [ProblemNote.SAME_OUTPUT]
    assert made(result=masked.replace("1e9", "1e3")).notes == []


@pytest.mark.parametrize("result", ["x.sum() > 2048", "x.argmax()", "torch.cat([torch.zeros(64, 64), x * 1e-6])"])
def test_an_output_that_differs_anywhere_is_no_such_output(made, result):
    assert made(result=result).notes == []


def test_inputs_that_repeat_are_told_and_then_nothing_is_said_of_the_output(made):
    assert made(inputs="[torch.ones(M, M)]").notes == [ProblemNote.SAME_INPUTS]
    assert made(before="KEPT = torch.rand(M, M)", inputs="[KEPT]").notes == []


def test_with_gradients_inputs_that_repeat_are_told_all_the_same(made):
    assert made(mode="forward_backward", inputs="[torch.ones(M, M)]").notes == [ProblemNote.SAME_INPUTS]


def test_windows_that_overlap_are_told_and_views_with_gaps_stay_as_they_are(made):
    assert made(inputs="[torch.rand(M).unfold(0, 4, 2)]").notes == [ProblemNote.OVERLAPPING_INPUT]
    reference = made(inputs="[torch.rand(M, 96)[:, :M], torch.rand(M, 1).expand(M, M)]", arguments="x, y", result="x + y")
    assert [each.stride() for each in reference.draw().arguments()] == [(96, 1), (1, 0)]
    assert reference.notes == []


NEVER_TWICE_IN_ONE_ORDER = "x[:, torch.randperm(M)].sum(1)"


def test_sums_in_another_order_each_time_count_as_an_error_of_eagers_own(made):
    (apart,) = made(result=NEVER_TWICE_IN_ONE_ORDER).call_to_call_u
    assert 0 < apart < 16


@pytest.mark.parametrize("result", [
    "torch.nn.functional.dropout(x)", "x + 1e-5 * torch.randn_like(x)", "x + torch.randn_like(x, dtype=torch.float32) * 1e-5",
    "(torch.rand(1) > 0.5).int() + (x * 1e6).int() % 97 + torch.randint(0, 1 << 30, (1,))", "x + 2e-6 * torch.rand_like(x)",
], ids=["dropout", "by 1e-5", "by 1e-5 in float32 alone", "whole numbers", "so little that its rows look independent"])
def test_a_reference_that_is_random_is_refused_however_little_it_is(made, result):
    with pytest.raises(InputError, match="is random: two calls on the same inputs differ by .* Call self.eval"):
        made(result=result)


def test_chance_is_looked_for_in_a_few_rows_where_rows_do_not_depend_on_each_other(made, monkeypatch):
    lengths = []
    whole = Truths.of
    monkeypatch.setattr(Truths, "of", lambda self, sets, **how: [
        lengths.extend(each.tensors()[0].shape[0] for each in sets), whole(self, sets, **how)
    ][1])
    made(result=NEVER_TWICE_IN_ONE_ORDER)
    assert lengths[:2] == [8, 8]
    lengths.clear()
    made(result=f"{NEVER_TWICE_IN_ONE_ORDER} + x.mean()")
    assert lengths[:2] == [64, 64]


def test_random_parts_below_what_any_bound_allows_count_as_an_error_of_eagers_own(made):
    (apart,) = made(result="x + 1e-7 * torch.rand_like(x)").call_to_call_u
    assert 0 < apart < 8


def test_what_moves_in_training_mode_is_known_by_its_names(made):
    reference = made(init="self.norm = torch.nn.BatchNorm1d(M)", result="self.norm(x)")
    assert reference.moved_state == ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked")
    born = {name: tensor.clone() for name, tensor in reference.state.items()}
    inputs = reference.draw()
    after = reference.state_after(born, inputs)
    assert torch.allclose(after["norm.running_mean"], 0.1 * inputs.arguments()[0].mean(0))
    assert after["norm.num_batches_tracked"].item() == 1
    assert torch.equal(reference.state["norm.running_mean"], born["norm.running_mean"])


def test_a_buffer_that_was_never_set_has_not_moved(made):
    assert made(init="self.register_buffer('kept', torch.full((3,), float('nan')))").moved_state == ()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"init": "self.layer = torch.nn.LazyLinear(3)", "result": "self.layer(x)"},
         r"without a shape before its first call \(layer.weight\).* Name its sizes"),
        ({"result": "x.to_sparse()"}, "returns a sparse_coo tensor, .* Return its dense form"),
        ({"inputs": "[torch.rand(M, M).to_sparse()]"}, "get_inputs.. of the reference returns a sparse_coo tensor.* Return its dense form"),
        ({"result": "x.T"}, "returns an input, or a view of one.* copy, as .clone"),
        ({"result": "(x + 1, x)"}, "returns an input, or a view of one"),
        ({"init": "self.register_buffer('table', torch.ones(3))", "result": "(x + 1, self.table)"},
         "its own parameter or buffer table, .* copy, as .clone"),
        ({"result": "x[x > x[0, 0]]"},  # of two draws one in 4,096 has as many, and of "> 0.5" one in a hundred
         r"shape follows the values of its inputs: \(\d+,\) for one draw, \(\d+,\) for another\. Return"),
        ({"result": "x.nonzero()[: int(x[0, 0] * 4000)]"}, "shape follows the values"),
        ({"result": "[x + 1] * int(1 + x[0, 0] * 1000)"}, r"follows the values of its inputs: \d+ for one draw, \d+ for"),
        ({"result": "x.clamp_(min=0.5) + 1"}, "writes to its own inputs, .* Let it return new tensors"),
        ({"result": "x.add_(1) * 2"}, "writes to its own inputs"),
        ({"result": "object()"}, "returns what cannot be compared: a object cannot cross.* Return tensors"),
        ({"result": "x.sum().item()"}, r"returns no tensor, and plain values alone.* before \.item"),
        ({"result": "[]"}, "returns no tensor"),
        ({"result": "{1: x + 1}"}, "returns what cannot be compared: a dict"),
        ({"inputs": "torch.rand(M, M)"}, r"it returns a Tensor, not a list; write return \[x\]"),
        ({"inputs": "[torch.rand(M, M, device='meta')]"}, "returns a meta tensor"),
        ({"parameters": ", n", "init_inputs": "3"}, r"cannot be constructed: TypeError: it returns a int, not a list"),
        ({"parameters": ", t", "init_inputs": "[torch.eye(2).to_sparse()]"}, "cannot be constructed: TypeError: a sparse_coo tensor"),
    ],
    ids=["lazy", "sparse output", "sparse input", "a view of its input", "its input beside another output", "its own buffer",
         "a mask", "cut by a value", "as many as a value says", "in place, the same each time", "in place", "an object",
         "a number", "nothing", "numbers as keys", "no list", "no memory", "init inputs no list", "sparse init inputs"],
)
def test_what_cannot_be_judged_is_refused_in_one_sentence_with_what_to_do(made, parts, said):
    with pytest.raises(InputError, match=said) as caught:
        made(**parts)
    assert "\n" not in str(caught.value)


def test_a_shape_that_changes_later_is_refused_when_it_does(made):
    reference = made(before="calls = []", result="(calls.append(1), x[: 64 - len(calls) // 40] + 1)[1]")
    with pytest.raises(InputError, match="shape follows the values"):
        for _ in range(60):
            reference.truth(reference.draw())


def test_arguments_by_name_reach_constructor_and_forward(made):
    reference = made(
        parameters=", width, *, scale=1.0", init="self.scale = width * scale", init_inputs="[[2], {'scale': 3.0}]",
        arguments="x, *, y", result="x * self.scale + y", inputs="[[torch.rand(M, M)], {'y': torch.rand(M, M)}]",
    )
    inputs = reference.draw()
    (x,), named = inputs.arguments()
    assert torch.equal(reference.eager(inputs)[0], x * 6 + named["y"]) and reference.truth_name == "float64"
    assert (reference.by_name, reference.init_by_name) == (True, True)


def test_with_gradients_arguments_by_name_have_theirs(made):
    reference = made(
        mode="forward_backward", arguments="x, *, y", result="x * y",
        inputs="[[torch.rand(M, M)], {'y': torch.rand(M, 96)[:, :M]}]",
    )
    inputs = reference.draw()
    ([x], named), [vector] = inputs.arguments()
    product, of_x, of_y = reference.eager(inputs)
    assert torch.equal(product, x * named["y"])
    assert torch.equal(of_x, vector * named["y"]) and torch.equal(of_y, vector * x)


def test_a_distance_is_in_u_of_the_largest_in_a_row_and_infinite_where_there_is_none():
    first = torch.tensor([[1.0, 1000.0], [0.0, 0.0]])
    assert distance_u(first, first + torch.tensor([[2.0**-24 * 1000 * 3, 0.0], [0.0, 0.0]])) == pytest.approx(3, rel=0.5)
    assert distance_u(first, first + torch.tensor([[0.0, 0.0], [1e-30, 0.0]])) == math.inf
    assert distance_u(first, torch.tensor([[math.nan, 1000.0], [0.0, 0.0]])) == math.inf
    lost = torch.tensor([[math.nan, math.inf]])
    assert distance_u(lost, lost.clone()) == 0.0


@pytest.mark.parametrize(
    ("shape", "rows"), [((5000, 4096), 1000), ((3, 1000, 8), 3), ((), 1), ((7,), 1), ((4, 0, 3), 0), ((1, 6_000_000), 1)]
)
def test_a_sample_is_of_whole_rows_and_of_four_million_elements_or_one_row(shape, rows):
    tensor = torch.empty(()).expand(shape)
    assert sampled(tensor).shape[0] == rows
