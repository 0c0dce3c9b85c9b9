"""How far two evaluations of the reference on the same inputs lie apart, output by output, in u of the row's scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from harness.reference.accuracy.bounds import ROW_ELEMENTS, error_unit
from harness.reference.accuracy.bounds_without_terms import Spread

# A row that is smaller than this share of the median one is judged by that: of a row in which little but zeros is left,
# as after a ReLU, the scale says nothing of what it was computed from. (benchmarks/precision_without_yaml.py has honest
# kernels of such an output.)
_SMALLEST = 1 / 8
# Of a larger output evenly spaced rows are looked at: a spread is a property of the reference, not a verdict.
_SAMPLED = 1 << 24


def with_arithmetic(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor`, or its numbers in fp32 where it has eight-bit floats: PyTorch neither adds nor orders nor compares those."""
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize == 1 else tensor


def row_scale(tensor: torch.Tensor) -> torch.Tensor:
    """The largest finite magnitude of each row of `tensor`, of a shape that broadcasts to it."""
    magnitude = torch.nan_to_num(with_arithmetic(tensor.detach()).abs(), nan=0.0, posinf=0.0)
    dims = row_dimensions(tensor.shape)
    return magnitude.amax(dim=dims, keepdim=True) if dims and tensor.numel() else magnitude


def without_small(scales: torch.Tensor) -> torch.Tensor:
    """The scales of rows, none below an eighth of the median of those above zero, repeated over a row as they were."""
    if not scales.numel():
        return scales
    rows = scales[tuple(slice(0, 1) if step == 0 else slice(None) for step in scales.stride())]
    median = torch.where(rows > 0, rows, torch.nan).nanmedian()
    return torch.maximum(rows, _SMALLEST * torch.nan_to_num(median, nan=0.0)).expand_as(scales)


def row_dimensions(shape: Sequence[int]) -> list[int]:
    """The dimensions of a row: the last, or as many of the last as hold `ROW_ELEMENTS` elements together."""
    dims, elements = [], 1
    for dim in range(len(shape) - 1, -1, -1):
        if dims and elements >= ROW_ELEMENTS:
            break
        dims.append(dim)
        elements *= shape[dim]
    return dims


def spread_between(own: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> list[Spread | None]:
    """The spread of each output of `own` around that of `other`, in u of `own`'s type; None for whole numbers and for
    what is empty. Where both are infinite or NaN they do not differ; where one is, the spread is infinite.
    """
    return [_spread(*pair) if pair[0].is_floating_point() and pair[0].numel() else None for pair in zip(own, other)]


def pooled(spreads: Sequence[Spread | None]) -> Spread | None:
    """Several spreads of one output as one: the largest of all, and the root mean square over all."""
    known = [each for each in spreads if each is not None]
    if not known:
        return None
    return Spread(max(each.max_u for each in known), math.sqrt(sum(each.rms_u**2 for each in known) / len(known)))


def _spread(own: torch.Tensor, other: torch.Tensor) -> Spread:
    unit = error_unit(str(own.dtype).removeprefix("torch."))
    own, other = (evenly_spaced(each, _SAMPLED).double() for each in (own, other))
    scale = without_small(torch.nan_to_num(other.abs(), nan=0.0, posinf=0.0).amax(dim=1, keepdim=True)) * unit
    same = (own == other) | (own.isnan() & other.isnan())
    apart = torch.where(same, 0.0, (own - other).abs() / scale)
    apart = torch.nan_to_num(apart, nan=math.inf, posinf=math.inf)
    return Spread(float(apart.amax()), float(apart.square().mean().sqrt()))


def in_rows(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as rows × elements of one error scale."""
    elements = math.prod(tensor.shape[dim] for dim in row_dimensions(tensor.shape))
    return tensor.reshape(-1, elements) if tensor.numel() else tensor.reshape(0, 1)


def evenly_spaced(tensor: torch.Tensor, most: int) -> torch.Tensor:
    """Rows of `tensor`, all or evenly spaced ones of about `most` elements, or one row."""
    rows = in_rows(tensor)
    return rows[:: max(1, -(-rows.numel() // max(most, rows.shape[1])))]
