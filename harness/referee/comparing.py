"""What a launch's differences from the truth amount to: error figures with the bounds that hold for its inputs.

Bounds that do not depend on eager are tried first, since they are the narrower: eager's own error is computed only for
the few launches that need it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from harness.accuracy.bounds import ROW_ELEMENTS, bounds_for, has_random_signs, is_exact
from harness.accuracy.classes import ErrorFigures, excess, within
from harness.inputs.sets import InputSet
from harness.records.sizes import sizes_text
from harness.referee.differences import Difference, differences
from harness.referee.evidence import evidence_of
from harness.referee.reference import Reference
from harness.referee.truths import Truth


@dataclass(frozen=True)
class Returned:
    """What one launch was given, what it must return and what it did."""

    inputs: InputSet
    truth: Truth
    outputs: list[torch.Tensor]


def judge_outputs(
    reference: Reference, inputs: InputSet, truth: Truth, outputs: list[torch.Tensor], precision_class: str
) -> ErrorFigures:
    """The worst output of one launch as error figures with the bounds that hold for these inputs.

    Figures that are over their bounds carry the evidence.
    """
    return judge_launches(reference, [Returned(inputs, truth, outputs)], precision_class)[0]


def judge_launches(
    reference: Reference, launches: Sequence[Returned], precision_class: str
) -> list[ErrorFigures]:
    """`judge_outputs` of each launch; one answer is waited for, and more only for launches over the narrow bounds."""
    own = [list(zip(each.outputs, each.truth.outputs, each.truth.scales)) for each in launches]
    eager = [list(zip(each.truth.eager, each.truth.outputs, each.truth.scales)) for each in launches]
    found = iter(differences([output for of_launch in (*own, *eager) for output in of_launch]))
    of_own = [list(islice(found, len(of_launch))) for of_launch in own]
    of_eager = [list(islice(found, len(of_launch))) for of_launch in eager]
    return [
        _judged(reference, each, *both, precision_class) for each, *both in zip(launches, of_own, of_eager)
    ]


def _judged(
    reference: Reference, launch: Returned, own: list[Difference], of_eager: list[Difference], precision_class: str
) -> ErrorFigures:
    """The figures of one launch; `own` and `of_eager` (empty where eager was not run) say how its outputs differ."""
    inputs, truth, outputs = launch.inputs, launch.truth, launch.outputs
    own = [
        _either(found, got, eager) for found, got, eager in zip(own, outputs, truth.eager or [None] * len(outputs))
    ]
    worst = max(own, key=lambda each: each.max_u, default=Difference(0.0, 0.0, None, None, None))
    eager_max_u = eager_rms_u = 0.0
    if not truth.eager and worst.max_u:
        quick = _figures(reference, inputs, worst, 0.0, 0.0, precision_class)
        if within(quick):
            return quick
        truth = replace(truth, eager=reference.eager(inputs))
        of_eager = differences(list(zip(truth.eager, truth.outputs, truth.scales)))
    for each in of_eager:
        if math.isfinite(each.max_u):
            eager_max_u, eager_rms_u = max(eager_max_u, each.max_u), max(eager_rms_u, each.rms_u)
    figures = _figures(reference, inputs, worst, eager_max_u, eager_rms_u, precision_class)
    if within(figures):
        return figures
    return replace(figures, evidence=evidence_of(reference, inputs, truth, outputs, figures.bounds))


def _figures(
    reference: Reference, inputs: InputSet, worst: Difference, eager_max_u: float, eager_rms_u: float,
    precision_class: str,
) -> ErrorFigures:
    family = inputs.family.name
    # Where terms cancel an error is small beside the sum of their magnitudes, and not beside what is left of them.
    random_signs = has_random_signs(family) and reference.sums_magnitudes
    lengths = [reference.terms]
    if lengths == [None] and worst.elements >= ROW_ELEMENTS:
        # Nobody says how long the sums are: either eager's error explains this one, or the longest sum that was seen.
        lengths.append(float(reference.longest_sum))
    judged = [
        ErrorFigures(
            max_u=worst.max_u, rms_u=worst.rms_u, eager_max_u=eager_max_u, eager_rms_u=eager_rms_u, family=family,
            sizes=sizes_text(reference.sizes) or "the reference's own sizes",
            bounds=bounds_for(
                precision_class, eager_max_u, eager_rms_u, terms, is_exact(family), random_signs=random_signs
            ),
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
