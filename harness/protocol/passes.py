"""What one call computes, of reference and candidate alike: `forward` alone, or then the gradients of everything that
has one from given cotangents, one for each floating output (the vector of a vector-Jacobian product).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from harness.protocol import tree
from harness.protocol.call_form import ByName, called

FORWARD, FORWARD_BACKWARD = "forward", "forward_backward"
_grad = torch.autograd.grad
# Of PyTorch's own class: a gradient or an output may have methods of its own by these names.
_detach, _clone, _storage = torch._C.TensorBase.detach, torch._C.TensorBase.clone, torch._C.TensorBase.untyped_storage
_enable_grad = torch.enable_grad


class ForwardBackward(torch.nn.Module):
    """`model` and its gradients as one call. With `by_name` the inputs are `[positional], {named}`.

    `between`, where it is set, is called when `forward` has returned and `backward` is about to begin. `names` are
    those of the reference's state in its order, in which gradients come where the model's parameters go by the same
    names: who registers a bias before a weight has the same parameters all the same.
    """

    def __init__(self, model: torch.nn.Module, names: Sequence[str] = (), *, by_name: bool = False) -> None:
        super().__init__()
        self.model = model
        self._names, self._order, self._by_name = names, None, by_name
        self.between: Callable[[], None] | None = None

    def forward(self, inputs: Sequence[Any], cotangents: Sequence[torch.Tensor]) -> tuple[Any, list[torch.Tensor]]:
        """`model(*inputs)` without its graph, and a gradient for each floating input, then each parameter.

        `cotangents` has the shape and dtype of each floating output, in order. What is not used has a gradient of
        zeros. A gradient that autograd hands on unchanged is copied, so that nothing returned is an input. Raises
        RuntimeError where the outputs have no gradient at all.
        """
        skeleton, tensors = tree.flatten(list(inputs))
        leaves = [each.detach().requires_grad_() if each.is_floating_point() else each for each in tensors]
        with _enable_grad():
            made = called(self.model, tree.rebuild(skeleton, leaves), self._by_name)
            if self.between is not None:
                self.between()
            form, outputs = tree.flatten(made)
            floating = [each for each in outputs if each.is_floating_point()]
            roots = [(each, vector) for each, vector in zip(floating, cotangents) if each.requires_grad]
            asked = [each for each in (*leaves, *self._parameters_in_order()) if each.requires_grad]
            if asked and not roots:
                raise RuntimeError(
                    "what forward returns has no gradient: compute it with PyTorch's functions or in a "
                    "torch.autograd.Function with a backward"
                )
            gradients = _grad(
                [each for each, _ in roots], asked, [vector for _, vector in roots], materialize_grads=True
            ) if asked else ()
        held = {_address(each) for each in (*tensors, *cotangents)}
        own = []
        for gradient in gradients:
            own.append(_clone(gradient) if _address(gradient) in held else _detach(gradient))
            held.add(_address(own[-1]))
        return tree.rebuild(form, [_detach(each) for each in outputs]), own

    def _parameters_in_order(self) -> list[torch.nn.Parameter]:
        """In the order that was found at the first call, when all of them are there: sorting takes time of each call."""
        parameters = list(self.model.parameters())
        if self._order is None or len(self._order) != len(parameters):
            self._order = _order_of(self.model, parameters, self._names)
        return [parameters[index] for index in self._order]


def _order_of(model: torch.nn.Module, parameters: Sequence[torch.nn.Parameter], names: Sequence[str]) -> list[int]:
    """The indices of `parameters` by the first place of their names among `names`; as they are where one has none."""
    places = {name: place for place, name in enumerate(names)}
    first: dict[torch.nn.Parameter, int] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if name not in places:
            return list(range(len(parameters)))
        first[parameter] = min(places[name], first.get(parameter, places[name]))
    return sorted(range(len(parameters)), key=lambda index: first[parameters[index]])


def as_called(
    model: torch.nn.Module, mode: str, names: Sequence[str] = (), *, by_name: bool = False
) -> torch.nn.Module:
    """`model` as a launch of `mode` calls it, with arguments as `[positional], {named}` where they are `by_name`;
    `names` are those of the reference's state.
    """
    if mode == FORWARD_BACKWARD:
        return ForwardBackward(model, names, by_name=by_name)
    return ByName(model) if by_name else model


def notice_backward(model: torch.nn.Module, notice: Callable[[], None] | None) -> None:
    """Have `notice` called between the passes of every call of `model`; nothing where it has only one."""
    if isinstance(model, ForwardBackward):
        model.between = notice


def _address(tensor: torch.Tensor) -> int:
    return _storage(tensor).data_ptr()
