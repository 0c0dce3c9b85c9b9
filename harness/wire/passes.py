"""What one call computes: `forward` alone, or `forward` and the gradients of everything that has one.

Referee and player wrap a model alike, so that reference and candidate do the same work in the same order: forward,
then backward from given cotangents, one for each floating output (the vector of a vector-Jacobian product).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from harness.wire import tree

FORWARD, FORWARD_BACKWARD = "forward", "forward_backward"
MODES = (FORWARD, FORWARD_BACKWARD)
_grad = torch.autograd.grad
_enable_grad = torch.enable_grad


class ForwardBackward(torch.nn.Module):
    """`model` and its gradients as one call.

    `between`, where it is set, is called when `forward` has returned and `backward` is about to begin.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
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
            made = self.model(*tree.rebuild(skeleton, leaves))
            if self.between is not None:
                self.between()
            form, outputs = tree.flatten(made)
            floating = [each for each in outputs if each.is_floating_point()]
            roots = [(each, vector) for each, vector in zip(floating, cotangents) if each.requires_grad]
            asked = [each for each in (*leaves, *self.model.parameters()) if each.requires_grad]
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
            own.append(gradient.clone() if _address(gradient) in held else gradient.detach())
            held.add(_address(own[-1]))
        return tree.rebuild(form, [each.detach() for each in outputs]), own


def as_called(model: torch.nn.Module, mode: str) -> torch.nn.Module:
    """`model` as a launch of `mode` calls it."""
    return ForwardBackward(model) if mode == FORWARD_BACKWARD else model


def notice_backward(model: torch.nn.Module, notice: Callable[[], None] | None) -> None:
    """Have `notice` called between the passes of every call of `model`; nothing where it has only one."""
    if isinstance(model, ForwardBackward):
        model.between = notice


def _address(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
