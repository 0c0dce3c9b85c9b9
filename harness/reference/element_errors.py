"""The error of each element of an output, on the device it lies on: what verdicts and evidence are both made of."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from harness.reference.accuracy.bounds import error_unit

# Of larger outputs errors are found a piece after the other: in float64 they take many times what an output does.
_AT_ONCE = 1 << 24


def element_errors(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """|C − C64| / (u·D) as float64, of the shape of `got`.

    Where D (`scale`) is zero, and everywhere in integer and boolean outputs, an element must be equal; one that is not,
    or that is NaN or infinite where the truth is neither, has an infinite error.
    """
    if scale is None or not got.is_floating_point():
        return torch.where(got == expected, 0.0, math.inf).double()
    unit = error_unit(str(got.dtype).removeprefix("torch."))
    wide = got.double()
    error = (wide - expected).abs() / (scale * unit)
    # 0/0 (equal where D is 0) is no error; anything else over 0 is an infinite one already.
    same = (wide == expected) | (wide.isnan() & expected.isnan())
    error = torch.where(same, 0.0, error)
    return torch.where(error.isnan(), math.inf, error)


def errors_over(
    got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None, limit_u: float
) -> tuple[torch.Tensor, float]:
    """Of which elements the error is over `limit_u`, and the largest error, found in pieces."""
    over, largest = torch.zeros(got.shape, dtype=torch.bool, device=got.device), 0.0
    for places, *piece in in_pieces(over, got, expected, scale):
        errors = element_errors(*piece)
        places.copy_(errors > limit_u)
        largest = max(largest, float(errors.max()))
    return over, largest


def in_pieces(first: torch.Tensor, *others: torch.Tensor | None) -> Iterator[tuple[torch.Tensor | None, ...]]:
    """Views that cover tensors of one shape, some sixteen million elements at a time; None stays None."""
    tensors = (first, *others)
    if first.numel() <= _AT_ONCE:
        if first.numel():
            yield tensors
        return
    rows = max(1, _AT_ONCE * first.shape[0] // first.numel())
    for start in range(0, first.shape[0], rows):
        piece = [None if each is None else each[start : start + rows] for each in tensors]
        if rows > 1 or first.dim() == 1:
            yield tuple(piece)
        else:
            yield from in_pieces(*(None if each is None else each[0] for each in piece))
