"""A call with its gradients: which there are, what they equal, and what is never handed back as one."""

from __future__ import annotations

import pytest
import torch

from harness.wire.passes import FORWARD, FORWARD_BACKWARD, ForwardBackward, as_called, notice_backward


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x, index):
        return x @ self.weight.t() + self.frozen, index + 1


class Of(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def test_gradients_are_of_floating_inputs_first_and_then_of_parameters_that_learn():
    x, vector = torch.rand(4, 3), torch.rand(4, 2)
    model = Linear()
    (made, index), gradients = ForwardBackward(model)([x, torch.tensor([1])], [vector])
    assert torch.equal(made, (x @ model.weight.t() + 1).detach())
    assert index.item() == 2
    assert len(gradients) == 2
    assert torch.allclose(gradients[0], vector @ model.weight.detach())
    assert torch.allclose(gradients[1], vector.t() @ x)


def test_nothing_that_is_returned_has_a_graph_and_no_input_is_marked():
    x = torch.rand(3)
    with torch.no_grad():
        made, gradients = ForwardBackward(Of(torch.sin))([x], [torch.ones(3)])
    assert not any(each.requires_grad for each in (made, *gradients, x))
    assert torch.allclose(gradients[0], x.cos())


def test_an_input_that_is_not_used_has_a_gradient_of_zeros():
    _, gradients = ForwardBackward(Of(lambda x, y: 2 * x))([torch.rand(3), torch.rand(2)], [torch.ones(3)])
    assert torch.equal(gradients[1], torch.zeros(2))


def test_gradients_that_autograd_hands_on_unchanged_are_memory_of_their_own():
    vector = torch.rand(3)
    _, gradients = ForwardBackward(Of(lambda x, y: x + y))([torch.rand(3), torch.rand(3)], [vector])
    assert all(torch.equal(each, vector) for each in gradients)
    assert len({each.untyped_storage().data_ptr() for each in (*gradients, vector)}) == 3


def test_each_of_several_outputs_has_its_own_cotangent():
    _, (gradient,) = ForwardBackward(Of(lambda x: {"twice": 2 * x, "count": 3, "square": x * x}))(
        [torch.tensor([5.0])], [torch.tensor([1.0]), torch.tensor([10.0])]
    )
    assert gradient.item() == 2 * 1 + 2 * 5 * 10


def test_an_output_without_a_gradient_beside_one_with_is_left_out_and_alone_is_a_sentence():
    both = Of(lambda x: (x.detach(), 3 * x))
    _, (gradient,) = ForwardBackward(both)([torch.ones(2)], [torch.ones(2), torch.ones(2)])
    assert gradient.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match=r"no gradient: compute it with .* torch.autograd.Function"):
        ForwardBackward(Of(lambda x: x.detach()))([torch.ones(2)], [torch.ones(2)])


def test_the_end_of_forward_is_noticed_once_for_each_call_before_backward_begins():
    steps = []

    class Noted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            steps.append("forward")
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            steps.append("backward")
            return gradient * 2

    model = as_called(Of(Noted.apply), FORWARD_BACKWARD)
    notice_backward(model, lambda: steps.append("between"))
    for _ in range(2):
        model([torch.ones(1)], [torch.ones(1)])
    assert steps == ["forward", "between", "backward"] * 2


def test_a_model_that_is_only_called_forward_is_left_as_it_is():
    model = Linear()
    assert as_called(model, FORWARD) is model
    notice_backward(model, print)
    assert not hasattr(model, "between")
