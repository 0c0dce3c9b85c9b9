"""A call with its gradients: which there are, what they equal, and what is never handed back as one."""

from __future__ import annotations

import pytest
import torch

from harness.protocol.passes import FORWARD, FORWARD_BACKWARD, ForwardBackward, as_called, notice_backward


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


class Affine(torch.nn.Module):
    """Weight and bias of one shape, registered in this order, and a scale that may be another name of one of them."""

    def __init__(self, *names, tied=False):
        super().__init__()
        for name in names:
            setattr(self, name, torch.nn.Parameter(torch.full((3,), 2.0)))
        if tied:
            self.scale = self.weight

    def forward(self, x):
        return (x * self.weight + self.bias) * getattr(self, "scale", 1)


def gradients_of(model, names=()):
    return ForwardBackward(model, names)([torch.full((3,), 5.0)], [torch.ones(3)])[1]


def test_gradients_of_parameters_come_in_the_references_order_whatever_order_they_are_registered_in():
    reference = Affine("weight", "bias")
    names, expected = list(reference.state_dict()), gradients_of(reference)
    assert [each[0].item() for each in expected] == [2.0, 5.0, 1.0]
    for made in (Affine("weight", "bias"), Affine("bias", "weight")):
        assert all(map(torch.equal, gradients_of(made, names), expected))
    assert [each[0].item() for each in gradients_of(Affine("bias", "weight"))] == [2.0, 1.0, 5.0], "its own, without names"


def test_a_parameter_of_two_names_comes_once_where_the_reference_has_the_first_of_them():
    reference = Affine("weight", "bias", tied=True)
    names = list(reference.state_dict())
    assert names == ["weight", "bias", "scale"]
    expected = gradients_of(reference)
    assert len(expected) == 3
    made = Affine("bias", "weight", tied=True)
    assert all(map(torch.equal, gradients_of(made, names), expected))


def test_parameters_of_other_names_keep_their_own_order():
    made = Affine("bias", "weight")
    made.register_parameter("gain", torch.nn.Parameter(torch.ones(3)))
    plain = gradients_of(made)
    assert all(map(torch.equal, gradients_of(made, ["weight", "bias"]), plain))


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
    assert gradient.item() == 2 * 5 * 1 + 2 * 10, "outputs in a dict are counted in the order of its keys"


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
