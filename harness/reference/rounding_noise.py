"""Which outputs of a reference are rounding noise: the mean of what was normalised to a mean of zero, say.

Strict eager is as far from the result in float64 there as any number of that size would be. Nothing that a candidate
returns can be called right or wrong, so that the problem has to be told of it.
"""

from __future__ import annotations

import math

import torch

from harness.model.problem_notes import ProblemNote
from harness.reference.accuracy.without_terms import Spread
from harness.reference.differences import differences
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.reference.spreads import without_small


def noisy_outputs(reference: Reference, inputs: InputSet | None = None) -> tuple[int, ...]:
    """The numbers of the outputs that are rounding noise on `inputs`, by default on a fresh draw.

    Of a reference that a YAML gives the length of its sums, and of one that has no truth in float64, none is.
    """
    if reference.terms is not None or reference.truth_name == "eager":
        return ()
    truth = reference.truth(reference.draw() if inputs is None else inputs)
    scales = [None if scale is None else without_small(scale) for scale in truth.scales]
    of_eager = differences(list(zip(truth.eager, truth.outputs, scales)))
    return tuple(
        number for number, (each, scale) in enumerate(zip(of_eager, truth.scales))
        if scale is not None and math.isfinite(each.rms_u)
        and reference.allowances.is_rounding_noise(Spread(each.max_u, each.rms_u))
    )


def note_rounding_noise(reference: Reference) -> None:
    """Note where all that the reference returns is rounding noise, in which nothing can be compared."""
    try:
        noisy = noisy_outputs(reference, reference.sample_of(reference.draw()))
    except torch.OutOfMemoryError:  # then it is known in rows, whose memory is planned
        return
    if noisy and len(noisy) == len(reference.output_specs) and ProblemNote.ROUNDING_NOISE not in reference.notes:
        reference.notes.append(ProblemNote.ROUNDING_NOISE)
