"""Inputs on which rounding to TF32, fp16 or bf16 shows in any output that depends on them, however much is averaged.

The rounding errors of a long sum of numbers drawn at random cancel: the mean of a million squares is the same with
inputs in TF32. Here each number is changed by less than 2⁻⁷ of itself, so that narrowing rounds it down or not at all,
whichever moves the output one way. Which way that is, a gradient of the reference says. Sums in fp32 see numbers as
random as before, and their errors cancel as before. An exception are chains of the very inputs: what is added to grows so
much larger than they are that fp32 rounds them as TF32 does for a while, which may come to 0.4 of what TF32 costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.protocol import tree
from harness.reference.inputs.families import GIVEN, Family
from harness.reference.inputs.pieces import changed_in_pieces, pieces_of

NAME = "one-way rounding"
# Of a float32's 23 bits TF32 and fp16 keep the first ten, bf16 seven. With the next one clear the rest is rounded down.
_HALF, _HALVES, _LOST = 0x1000, 0x9000, 0x1FFF
# The two between, each set in a quarter of the numbers: a sum so large that fp32 rounds one of these away rounds as much
# up as down. (benchmarks/precision_without_yaml.py has the table, in the rows of sums of the inputs.)
_BETWEEN = (0x2000, 0x4000)


@dataclass(frozen=True)
class OneWayFamily(Family):
    """The family of one reference; `call` is its model. A kernel takes no longer for it, so that it may be timed."""

    call: Callable[..., Any] = print

    def applied(
        self, skeleton: Any, tensors: Sequence[torch.Tensor], contracted: Sequence[int] | None
    ) -> list[torch.Tensor]:
        pulls = _pulls(self.call, skeleton, tensors)
        return [rounded_one_way(tensor, pull) for tensor, pull in zip(tensors, pulls)]


def one_way_family(call: Callable[..., Any]) -> Family:
    """The family for the reference whose model is `call`."""
    return OneWayFamily(NAME, False, GIVEN.transform, is_timed=True, is_for_products=False, call=call)


def to_tf32(tensor: torch.Tensor) -> torch.Tensor:
    """A float32 tensor rounded to TF32, to nearest with ties to even; any other as it is."""
    return changed_in_pieces(_in_tf32, tensor) if tensor.dtype is torch.float32 else tensor


def _in_tf32(tensor: torch.Tensor) -> torch.Tensor:
    bits = tensor.view(torch.int32)
    rounded = (bits + (_HALF - 1) + ((bits >> 13) & 1)) & ~_LOST
    return torch.where(tensor.isfinite(), rounded.view(torch.float32), tensor)


def can_be_narrowed(tensor: torch.Tensor) -> bool:
    """Whether a tensor has what narrowing loses: float32, and not whole numbers (labels, masks, counts)."""
    return tensor.dtype is torch.float32 and any(bool((piece != piece.round()).any()) for piece in pieces_of(tensor))


def rounded_one_way(tensor: torch.Tensor, pull: torch.Tensor | None) -> torch.Tensor:
    """`tensor` with numbers that narrowing rounds towards zero where `pull` is positive, and leaves alone elsewhere.

    Without a pull it rounds all of them towards zero. What cannot be narrowed stays as it is. Draws from PyTorch's random
    numbers.
    """
    if not can_be_narrowed(tensor):
        return tensor
    return _laid_out_as(tensor, changed_in_pieces(_rounded, tensor, *([] if pull is None else [pull])))


def _rounded(tensor: torch.Tensor, pull: torch.Tensor | None = None) -> torch.Tensor:
    bits = tensor.view(torch.int32)
    down = bits & ~_HALVES
    for bit in _BETWEEN:
        down = down & ~(bit * torch.randint_like(bits, 0, 2))
    bits = down if pull is None else torch.where(pull > 0, down, bits & ~_LOST)
    return torch.where(tensor.isfinite(), bits.view(torch.float32), tensor)


def _laid_out_as(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """`values` with the strides of `tensor`, unless its elements share memory."""
    if values.stride() == tensor.stride() or 0 in tensor.stride():
        return values
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device).copy_(values)


def _pulls(call: Callable[..., Any], skeleton: Any, tensors: Sequence[torch.Tensor]) -> Sequence[torch.Tensor | None]:
    """For each tensor, where rounding towards zero moves the outputs together: one way for all, the one that moves more.

    None for each where there is no gradient, or no room for one.
    """
    try:
        pulls = _gradients_times_values(call, skeleton, tensors)
    except Exception:  # no gradient of such a model, or no room for one
        return [None] * len(tensors)
    known_pulls = [pull for pull in pulls if pull is not None]
    if not any(bool(pull.any()) for pull in known_pulls):
        return [None] * len(tensors)
    # A bias to one side is what rounding down changes; the other side would do as well, with the sign turned.
    pieces = [piece for pull in known_pulls for piece in pieces_of(pull)]
    more_up = sum(float(piece.clamp(min=0).sum()) + float(piece.clamp(max=0).sum()) for piece in pieces) >= 0
    return [pull if pull is None or more_up else pull.neg_() for pull in pulls]


def _gradients_times_values(
    call: Callable[..., Any], skeleton: Any, tensors: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """Of each tensor that can be narrowed how much each element adds to the outputs, to the first order, as float32.

    Each element of an output counts with a sign of its own: a sum over all of them may be the same for all inputs.
    """
    leaves = [tensor.detach().requires_grad_() if can_be_narrowed(tensor) else tensor for tensor in tensors]
    asked = [leaf for leaf in leaves if leaf.requires_grad]
    if not asked:
        return [None] * len(tensors)
    with torch.enable_grad():
        _, outputs = tree.flatten(call(*tree.rebuild(skeleton, leaves)))
        roots = [output for output in outputs if output.requires_grad]
        signs = [2 * torch.randint_like(root, 0, 2) - 1 if root.numel() > 1 else torch.ones_like(root) for root in roots]
        gradients = iter(torch.autograd.grad(roots, asked, signs, allow_unused=True))
    of_each = [next(gradients) if leaf.requires_grad else None for leaf in leaves]
    return [each if each is None else torch.nan_to_num(each).mul_(leaf.detach()) for each, leaf in zip(of_each, leaves)]
