"""What a launch's differences from the truth amount to: error figures with the bounds that hold for its inputs.

Bounds that do not depend on eager are tried first, since they are the narrower: eager's own error is computed only for
the few launches that need it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from harness.accuracy.bounds import ROW_ELEMENTS, bounds_for, is_exact
from harness.accuracy.classes import ErrorFigures, excess, within
from harness.inputs.sets import InputSet
from harness.records.schema import sizes_text
from harness.referee.differences import Difference, difference
from harness.referee.evidence import evidence_of
from harness.referee.reference import Reference, Truth


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
    lengths = [reference.terms]
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


def _either(found: Difference, got: torch.Tensor, eager: torch.Tensor | None) -> Difference:
    """An output equal to strict eager to the bit is right, whatever float64 says (a branch on a rounded value)."""
    if eager is not None and math.isinf(found.max_u) and torch.equal(got, eager):
        return Difference(0.0, 0.0, None, None, None)
    return found
