"""Comparing a candidate's bytes with the truth, on the device: errors in u, or the first thing that is wrong.

The error of an element is |C − C64| / (u·D). Where D is zero, and in integer and boolean outputs, an element must be
equal. Bounds that do not depend on eager are tried first, since they are the narrower: eager's own error is
computed only for the few launches that need it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from harness.accuracy.bounds import ROW_ELEMENTS, bounds_for, error_unit, is_exact
from harness.accuracy.classes import ErrorFigures, excess, within
from harness.inputs.sets import InputSet
from harness.records.schema import sizes_text
from harness.referee.element_errors import element_errors
from harness.referee.evidence import evidence_of
from harness.referee.reference import Reference, Truth

# Stands for an error scale of zero, where any difference must show: in units of it none is too small to be large.
_NO_SCALE = 2.0**-500
_LARGE_U = 2.0**60


@dataclass(frozen=True)
class Difference:
    """How one output differs: errors in u, and the worst element with what was got and expected there."""

    max_u: float
    rms_u: float
    worst_index: tuple[int, ...] | None
    got: float | None
    expected: float | None
    not_finite: int = 0
    elements: int = 0


def difference(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None) -> Difference:
    """Compare one output. `expected` is float64 with error scale `scale`, or of the output's own exact type.

    An element that must be equal and is not, or that is NaN or infinite where the truth is neither, has an
    infinite error.
    """
    if got.numel() == 0:
        return Difference(0.0, 0.0, None, None, None)
    if scale is None or not got.is_floating_point():
        return _exact_difference(got, expected)
    return _ordinary_difference(got, expected, scale) or _any_difference(got, expected, scale)


def _ordinary_difference(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor) -> Difference | None:
    """The difference of an output without NaN, infinity or a difference where the scale is zero; None for any other.

    Few passes over the output, where telling all cases apart takes three times as long.
    """
    if got.dtype == torch.float64:  # as fine as the truth: a difference may be smaller than what stands for zero
        return None
    unit = error_unit(str(got.dtype).removeprefix("torch."))
    wide = got.double()
    flat = (wide - expected).abs_().div_((scale * unit).clamp_(min=_NO_SCALE)).flatten()
    worst = flat.argmax()
    figures = torch.stack(
        [flat[worst], torch.linalg.vector_norm(flat), worst.double(), wide.flatten()[worst], expected.flatten()[worst]]
    ).tolist()
    max_u, norm_u, position, got_value, expected_value = figures
    if not max_u < _LARGE_U:  # NaN is not either
        return None
    rms_u = norm_u / math.sqrt(flat.numel())
    return Difference(max_u, rms_u, _unravel(int(position), got.shape), got_value, expected_value, 0, flat.numel())


def _any_difference(got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor) -> Difference:
    wide = got.double()
    lost = ~wide.isfinite() & expected.isfinite()
    flat = element_errors(got, expected, scale).flatten()
    worst = flat.argmax()
    squares = torch.where(flat.isfinite(), flat, 0.0).square().sum()
    figures = torch.stack(
        [flat[worst], squares, worst.double(), wide.flatten()[worst], expected.flatten()[worst], lost.sum().double()]
    ).tolist()
    max_u, square_sum, position, got_value, expected_value, lost_count = figures
    rms_u = math.sqrt(square_sum / flat.numel()) if math.isfinite(max_u) else math.inf
    return Difference(max_u, rms_u, _unravel(int(position), got.shape), got_value, expected_value, int(lost_count), flat.numel())


def judge_outputs(
    reference: Reference, inputs: InputSet, truth: Truth, outputs: list[torch.Tensor], precision_class: str
) -> ErrorFigures:
    """The worst output of one launch as error figures with the bounds that hold for these inputs.

    Figures that are over their bounds carry the evidence.
    """
    differences = [
        difference(got, expected, scale) for got, expected, scale in zip(outputs, truth.outputs, truth.scales)
    ]
    differences = [
        _either(found, got, eager)
        for found, got, eager in zip(differences, outputs, truth.eager or [None] * len(outputs))
    ]
    worst = max(differences, key=lambda each: each.max_u, default=Difference(0.0, 0.0, None, None, None))
    eager_max_u = eager_rms_u = 0.0
    if not truth.eager and worst.max_u:
        quick = _figures(reference, inputs, worst, 0.0, 0.0, precision_class)
        if within(quick):
            return quick
        truth = replace(truth, eager=reference.eager(inputs))
    for eager, expected, scale in zip(truth.eager, truth.outputs, truth.scales):
        own = difference(eager, expected, scale)
        if math.isfinite(own.max_u):
            eager_max_u, eager_rms_u = max(eager_max_u, own.max_u), max(eager_rms_u, own.rms_u)
    figures = _figures(reference, inputs, worst, eager_max_u, eager_rms_u, precision_class)
    if within(figures):
        return figures
    return replace(figures, evidence=evidence_of(reference, inputs, truth, outputs, figures.bounds))


def _figures(
    reference: Reference, inputs: InputSet, worst: Difference, eager_max_u: float, eager_rms_u: float,
    precision_class: str,
) -> ErrorFigures:
    family = inputs.family.name
    lengths = [reference.terms()]
    if lengths == [None] and worst.elements >= ROW_ELEMENTS:
        # Nobody says how long the sums are: either eager's error explains this one, or the longest sum that was seen.
        lengths.append(float(reference.longest_sum))
    judged = [
        ErrorFigures(
            max_u=worst.max_u, rms_u=worst.rms_u, eager_max_u=eager_max_u, eager_rms_u=eager_rms_u, family=family,
            sizes=sizes_text(reference.sizes) or "the reference's own sizes",
            bounds=bounds_for(precision_class, eager_max_u, eager_rms_u, terms, is_exact(family)),
            worst_index=worst.worst_index, got=worst.got, expected=worst.expected,
        )
        for terms in lengths
    ]
    return min(judged, key=excess)


def _exact_difference(got: torch.Tensor, expected: torch.Tensor) -> Difference:
    wrong = (got != expected).flatten()
    count = int(wrong.sum())
    if count == 0:
        return Difference(0.0, 0.0, None, None, None)
    position = int(wrong.to(torch.uint8).argmax())
    got_value, expected_value = float(got.flatten()[position]), float(expected.flatten()[position])
    return Difference(math.inf, math.inf, _unravel(position, got.shape), got_value, expected_value)


def _either(found: Difference, got: torch.Tensor, eager: torch.Tensor | None) -> Difference:
    """An output equal to strict eager to the bit is right, whatever float64 says (a branch on a rounded value)."""
    if eager is not None and math.isinf(found.max_u) and torch.equal(got, eager):
        return Difference(0.0, 0.0, None, None, None)
    return found


def _unravel(position: int, shape: torch.Size) -> tuple[int, ...]:
    index = []
    for size in reversed(shape):
        index.append(position % size)
        position //= size
    return tuple(reversed(index))
