"""Which outputs of a reference are rounding noise: the mean of what was normalised to a mean of zero, say.

Strict eager is as far from the result in float64 there as any number of that size would be. Nothing that a candidate
returns can be called right or wrong, so that the problem has to be told of it.
"""

from __future__ import annotations

import torch

from harness.model.problem_notes import ProblemNote
from harness.reference.error_figures import usual_spreads
from harness.reference.reference_model import Reference


def noisy_outputs(reference: Reference) -> tuple[int, ...]:
    """Return the numbers of the outputs that are rounding noise, by what eager usually is off.

    Of a reference that a YAML gives the length of its sums, and of one that has no truth in float64, none is.
    """
    if reference.terms is not None or reference.truth_name == "eager":
        return ()
    floating = [spec.torch_dtype.is_floating_point for spec in reference.output_specs]
    return tuple(
        number for number, (spread, floats) in enumerate(zip(usual_spreads(reference), floating))
        if floats and reference.measured_bounds.is_rounding_noise(spread)
    )


def note_rounding_noise(reference: Reference) -> None:
    """Note where all that the reference returns is rounding noise, in which nothing can be compared."""
    try:
        noisy = noisy_outputs(reference)
    except torch.OutOfMemoryError:  # then it is known in rows, whose memory is planned
        return
    if noisy and len(noisy) == len(reference.output_specs) and ProblemNote.ROUNDING_NOISE not in reference.notes:
        reference.notes.append(ProblemNote.ROUNDING_NOISE)
