"""Changes of large tensors element by element, a piece at a time: beside the result they take a piece's memory and no more.

A step such as rounding to TF32 has several results of its own on the way, each as large as the tensor. Where one tensor is
a fifth of a device these would have no room, and what they are for would be left out.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

_AT_ONCE = 1 << 24  # elements: 64 MiB of float32


def pieces_of(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Views of all elements, one after the other; the tensor itself where it is small or does not lie in one row."""
    if tensor.numel() <= _AT_ONCE or not tensor.is_contiguous():
        return (tensor,)
    return tensor.view(-1).split(_AT_ONCE)


def changed_in_pieces(change: Callable[..., torch.Tensor], tensor: torch.Tensor, *beside: torch.Tensor) -> torch.Tensor:
    """What `change` makes of a tensor, and of others of its shape `beside` it, where it goes element by element.

    In one step where the tensor is small, or one of them does not lie in one row.
    """
    together = (tensor, *beside)
    if tensor.numel() <= _AT_ONCE or not all(each.is_contiguous() for each in together):
        return change(*together)
    made = torch.empty_like(tensor)
    for target, *pieces in zip(pieces_of(made), *map(pieces_of, together)):
        target.copy_(change(*pieces))
    return made
