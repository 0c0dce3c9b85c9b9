"""Slices of a call along its batch: an expected output that is too large for one float64 pass is made slice by slice.

A model is cut only where it is shown, on inputs that were drawn, that slices of its inputs give slices of its outputs, or
that their mean or sum is its output. Models that mix the batch (a batch norm in training mode) fail that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from harness.reference.spreads import with_arithmetic

Call = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]

# Libraries choose another algorithm for another batch, whose sums run in another order: a few dozen u of the largest value.
_APART = 64 * 2.0**-24
_TRIED_SLICES = 4
_MOST_WAYS = 24
_COMPARED_AT_ONCE = 1 << 24
ROWS, MEAN, SUM = "rows", "mean", "sum"


@dataclass(frozen=True)
class Slicing:
    """How a call is cut: `length` positions of a batch, which is axis `axes[i]` of input tensor i (None: every slice has
    all of it). `join` says what the slices' outputs are to the call's: its rows along axis 0, or terms of a mean or sum.
    """

    length: int
    axes: tuple[int | None, ...]
    join: str

    def stretches(self, count: int) -> list[range]:
        """At most `count` stretches of the batch, as equal as may be."""
        count = max(1, min(count, self.length))
        edges = [self.length * number // count for number in range(count + 1)]
        return [range(start, stop) for start, stop in zip(edges, edges[1:])]

    def cut(self, tensors: Sequence[torch.Tensor], stretch: range) -> list[torch.Tensor]:
        """The input tensors of one slice, views of the whole ones."""
        return [
            tensor if axis is None else tensor.narrow(axis, stretch.start, len(stretch))
            for tensor, axis in zip(tensors, self.axes)
        ]

    def joined(self, call: Call, tensors: Sequence[torch.Tensor], count: int) -> list[torch.Tensor]:
        """The outputs of the whole call, made in `count` slices."""
        made: list[torch.Tensor] = []
        for stretch in self.stretches(count):
            parts = call(self.cut(tensors, stretch))
            if self.join == ROWS:
                made = made or [part.new_empty((self.length, *part.shape[1:])) for part in parts]
                for whole, part in zip(made, parts):
                    whole[stretch.start : stretch.stop].copy_(part)
            else:
                weight = len(stretch) / self.length if self.join == MEAN else 1.0
                made = made or [torch.zeros_like(part) for part in parts]
                for whole, part in zip(made, parts):
                    whole += weight * part
        return made


def find_slicing(call: Call, tensors: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> Slicing | None:
    """A way to cut `call`, which returned `outputs` for `tensors`; None where no way is seen to be right."""
    joins = _joins_of(outputs)
    if not joins or not tensors:
        return None
    for length in _lengths(tensors, outputs, joins):
        for axes in itertools.islice(_ways(tensors, length), _MOST_WAYS):
            for join in joins:
                slicing = Slicing(length, axes, join)
                if _holds(slicing, call, tensors, outputs):
                    return slicing
    return None


def _joins_of(outputs: Sequence[torch.Tensor]) -> tuple[str, ...]:
    if outputs and all(output.dim() and output.numel() for output in outputs):
        return (ROWS,) if len({output.shape[0] for output in outputs}) == 1 and len(outputs[0]) > 1 else ()
    scalars = outputs and all(output.numel() == 1 and output.is_floating_point() for output in outputs)
    return (MEAN, SUM) if scalars else ()


def _lengths(tensors: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], joins: Sequence[str]) -> list[int]:
    if ROWS in joins:
        return [outputs[0].shape[0]]
    return [length for length in dict.fromkeys(tensor.shape[0] for tensor in tensors if tensor.dim()) if length > 1]


def _ways(tensors: Sequence[torch.Tensor], length: int) -> Iterator[tuple[int | None, ...]]:
    """Axes of each tensor that may be the batch, the first axis of every tensor that has one so long first."""
    options = [[*(axis for axis, size in enumerate(each.shape) if size == length), None] for each in tensors]
    return (axes for axes in itertools.product(*options) if any(axis is not None for axis in axes))


def _holds(slicing: Slicing, call: Call, tensors: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    """Whether the slices of this way are right: the first and the last of rows, all terms of a mean or sum."""
    stretches = slicing.stretches(_TRIED_SLICES)
    try:
        if slicing.join != ROWS:
            return _alike(slicing.joined(call, tensors, len(stretches)), outputs)
        for stretch in (stretches[0], stretches[-1]):
            rows = [output[stretch.start : stretch.stop] for output in outputs]
            if not _alike(call(slicing.cut(tensors, stretch)), rows):
                return False
        return True
    except torch.OutOfMemoryError:
        raise
    except Exception:  # a model that names its batch raises for another one
        return False


def _alike(made: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> bool:
    if [each.shape for each in made] != [each.shape for each in expected]:
        return False
    return all(largest_apart(one, other) <= _APART for one, other in zip(made, expected))


def largest_apart(one: torch.Tensor, other: torch.Tensor) -> float:
    """The largest distance between elements, over the largest finite magnitude of `other`; 0 where all are equal or NaN in
    both, infinite where one alone is not finite. Held against each other piece by piece, to hold no third copy.
    """
    if not other.is_floating_point():
        return 0.0 if torch.equal(one, other) else float("inf")
    one, other = with_arithmetic(one), with_arithmetic(other)
    apart, largest = other.new_zeros(()), other.new_zeros(())
    for ours, theirs in zip(one.flatten().split(_COMPARED_AT_ONCE), other.flatten().split(_COMPARED_AT_ONCE)):
        same = (ours == theirs) | (ours.isnan() & theirs.isnan())
        distance = torch.where(same, 0.0, (ours - theirs).abs())
        apart = torch.maximum(apart, torch.where(distance.isnan(), float("inf"), distance).amax())
        largest = torch.maximum(largest, torch.where(theirs.isfinite(), theirs, 0.0).abs().amax())
    if not bool(apart):
        return 0.0
    return float(apart.double() / largest.double()) if bool(largest) else float("inf")
