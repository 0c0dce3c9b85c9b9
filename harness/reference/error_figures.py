"""What a launch's differences from the truth amount to: error figures with the bounds that hold for its inputs.

Bounds that do not depend on eager are tried first, since they are the narrower: eager's own error is computed only for
the few launches that need it. Where no YAML says how long the sums are, each output has bounds of its own, or is found
to be rounding noise, for which there are none.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import torch

from harness.model.problem_notes import ProblemNote
from harness.model.sizes_text import sizes_text
from harness.reference.accuracy.bounds import Bounds, bounds_for, has_random_signs, is_exact
from harness.reference.accuracy.classes import ErrorFigures, excess, within
from harness.reference.accuracy.bounds_without_terms import Spread
from harness.reference.differences import Difference, differences
from harness.reference.ties_and_thresholds import excused
from harness.reference.evidence_collector import evidence_of
from harness.reference.expected import Truth
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.reference.spreads import with_arithmetic, without_small

_SAME = Difference(0.0, 0.0, None, None, None)
_NO_SPREAD = Spread(0.0, 0.0)
_NEAR_EAGER = 0.5
_QUICK_BOUNDS = 2  # of an output: wider ones take float64 passes of their own


@dataclass(frozen=True)
class Returned:
    """What one launch was given, what it must return and what it did."""

    inputs: InputSet
    truth: Truth
    outputs: list[torch.Tensor]


def judge_outputs(
    reference: Reference, inputs: InputSet, truth: Truth, outputs: list[torch.Tensor], precision_class: str
) -> ErrorFigures:
    """The worst output of one launch as error figures, with evidence where they are over their bounds."""
    return judge_launches(reference, [Returned(inputs, truth, outputs)], precision_class)[0]


def judge_launches(reference: Reference, launches: Sequence[Returned], precision_class: str) -> list[ErrorFigures]:
    """`judge_outputs` of each launch; one answer is waited for, and more only for launches over the narrow bounds."""
    if reference.terms is None:
        launches = [replace(each, truth=_without_small_scales(each.truth)) for each in launches]
    own = [list(zip(each.outputs, each.truth.outputs, each.truth.scales)) for each in launches]
    eager = [list(zip(each.truth.eager, each.truth.outputs, each.truth.scales)) for each in launches]
    remaining = iter(differences([output for of_launch in (*own, *eager) for output in of_launch]))
    of_own = [list(islice(remaining, len(of_launch))) for of_launch in own]
    of_eager = [list(islice(remaining, len(of_launch))) for of_launch in eager]
    return [_judged(reference, each, *both, precision_class) for each, *both in zip(launches, of_own, of_eager)]


def is_drawn(one_of: int) -> bool:
    """Return whether chance has a launch, or a slice of one, held against its truth, as it has one of so many."""
    return secrets.randbelow(one_of) == 0


def near_eager(reference: Reference, launches: Sequence[Returned], precision_class: str) -> list[ErrorFigures | None]:
    """The figures of each launch whose outputs lie within half of their bounds around strict eager's, which stand in the
    place of the truth; None for any other. With eager within the other half the bounds around the truth hold too.
    """
    near = []
    for launch in launches:
        truth = launch.truth if reference.terms is not None else _without_small_scales(launch.truth)
        own = differences(list(zip(launch.outputs, truth.outputs, truth.scales)))
        near.append(_near_eager(reference, launch.inputs, own, usual_spreads(reference), precision_class))
    return near


def _near_eager(
    reference: Reference, inputs: InputSet, own: Sequence[Difference], eager: Sequence[Spread], precision_class: str
) -> ErrorFigures | None:
    """The figures of the output that is nearest to its bounds, where all are within half of theirs, as `eager` usually is."""
    if reference.terms is not None:
        figures, _ = _by_terms(reference, inputs, own, eager, precision_class)
        return figures if excess(figures) <= _NEAR_EAGER else None
    judged = [_nothing_off(reference, inputs, precision_class)]
    for number, (difference, spread) in enumerate(zip(own, eager)):
        quick = islice(reference.measured_bounds.bounds(number, spread, inputs, precision_class), _QUICK_BOUNDS)
        every = (_figures(reference, inputs, difference, spread, bounds) for bounds in quick)
        near = next((figures for figures in every if excess(figures) <= _NEAR_EAGER and _is_half(spread, figures.bounds)), None)
        if near is None:
            return None
        judged.append(near)
    return max(judged, key=excess)


def _is_half(spread: Spread, bounds: Bounds) -> bool:
    """Whether errors of that size are within half of `bounds`."""
    rms_u = math.inf if bounds.rms_u is None else bounds.rms_u
    return spread.max_u <= _NEAR_EAGER * bounds.max_u and spread.rms_u <= _NEAR_EAGER * rms_u


def usual_spreads(reference: Reference) -> list[Spread]:
    """Return eager's errors on a draw of its own, worked out once, as those of a launch are."""
    if reference.eager_spreads is None:
        truth = reference.usual_truth()
        truth = truth if reference.terms is not None else _without_small_scales(truth)
        reference.eager_spreads = _spreads(differences(list(zip(truth.eager, truth.outputs, truth.scales))), reference)
    return reference.eager_spreads


def _without_small_scales(truth: Truth) -> Truth:
    return replace(truth, scales=[None if scale is None else without_small(scale) for scale in truth.scales])


def _judged(
    reference: Reference, launch: Returned, own: list[Difference], of_eager: list[Difference], precision_class: str
) -> ErrorFigures:
    """The figures of one launch; `own` and `of_eager` (empty where eager was not run) say how its outputs differ."""
    inputs, truth, outputs = launch.inputs, launch.truth, launch.outputs
    own = [_either(*each) for each in zip(own, outputs, truth.eager or [None] * len(outputs))]
    judge = _by_terms if reference.terms is not None else _by_measured_bounds
    eager = _spreads(of_eager, reference) if truth.eager else None
    figures, number = judge(reference, inputs, own, eager, precision_class)
    if eager is None and not within(figures):
        truth = replace(truth, eager=reference.eager(inputs))
        eager = _spreads(differences(list(zip(truth.eager, truth.outputs, truth.scales))), reference)
        figures, number = judge(reference, inputs, own, eager, precision_class)
    for _ in own:
        if within(figures):
            return figures
        wrong = own.index(max(own, key=lambda each: each.max_u)) if number is None else number
        other = excused(reference, inputs, truth, outputs[wrong], wrong, figures.bounds.max_u)
        if other is None:
            break
        own[wrong] = other
        figures, number = judge(reference, inputs, own, eager, precision_class)
    if within(figures):
        return figures
    return replace(figures, evidence=evidence_of(reference, inputs, truth, outputs, figures.bounds, number))


def _by_terms(
    reference: Reference, inputs: InputSet, own: Sequence[Difference], eager: Sequence[Spread] | None,
    precision_class: str,
) -> tuple[ErrorFigures, int | None]:
    """By the formula of a YAML: the worst output, and bounds that hold for all of them."""
    family = inputs.family.name
    max_u = max((each.max_u for each in eager or ()), default=0.0)
    rms_u = max((each.rms_u for each in eager or ()), default=0.0)
    bounds = bounds_for(
        precision_class, max_u, rms_u, reference.terms, is_exact(family),
        # Where terms cancel an error is small beside the sum of their magnitudes, and not beside what is left of them.
        random_signs=has_random_signs(family) and reference.sums_magnitudes,
    )
    worst = max(own, key=lambda each: each.max_u, default=_SAME)
    return _figures(reference, inputs, worst, Spread(max_u, rms_u), bounds), None


def _by_measured_bounds(
    reference: Reference, inputs: InputSet, own: Sequence[Difference], eager: Sequence[Spread] | None,
    precision_class: str,
) -> tuple[ErrorFigures, int | None]:
    """Each output by bounds of its own, the first that hold: the worst output, and its number."""
    judged = []
    for number, difference in enumerate(own):
        spread = _NO_SPREAD if eager is None else eager[number]
        for bounds in reference.measured_bounds.bounds(number, spread, inputs, precision_class):
            figures = _figures(reference, inputs, difference, spread, bounds)
            if eager is None or within(figures):
                break
        judged.append((figures, number))
    nothing = _nothing_off(reference, inputs, precision_class), None
    return max(judged, key=lambda each: excess(each[0]), default=nothing)


def _nothing_off(reference: Reference, inputs: InputSet, precision_class: str) -> ErrorFigures:
    return _figures(reference, inputs, _SAME, _NO_SPREAD, Bounds(8.0, None, precision_class))


def _figures(reference: Reference, inputs: InputSet, own: Difference, eager: Spread, bounds: Bounds) -> ErrorFigures:
    return ErrorFigures(
        max_u=own.max_u, rms_u=own.rms_u, eager_max_u=eager.max_u, eager_rms_u=eager.rms_u, family=inputs.family.name,
        sizes=sizes_text(reference.sizes) or "the reference's own sizes", bounds=bounds, worst_index=own.worst_index,
        got=own.got, expected=own.expected, has_products=reference.has_products,
    )


def _spreads(of_eager: Sequence[Difference], reference: Reference) -> list[Spread]:
    """Eager's errors, with what it differs by from itself from call to call; one that is infinite allows nothing."""
    return [
        Spread(each.max_u + again_u, each.rms_u) if math.isfinite(each.max_u) else Spread(0.0, 0.0)
        for each, again_u in zip(of_eager, reference.call_to_call_u)
    ]


def _either(difference: Difference, got: torch.Tensor, eager: torch.Tensor | None) -> Difference:
    """An output equal to strict eager to the bit is right, whatever float64 says (a branch on a rounded value)."""
    if eager is not None and math.isinf(difference.max_u) and torch.equal(with_arithmetic(got), with_arithmetic(eager)):
        return _SAME
    return difference


# Which outputs of a reference are rounding noise: the mean of what was normalised to a mean of zero, say. Strict eager is as
# far from the result in float64 there as any number of that size would be. Nothing that a candidate returns can be called
# right or wrong, so that the problem has to be told of it.


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


def note_what_cannot_be_compared(reference: Reference) -> None:
    """Note where an output of the reference is rounding noise, and where all are choices that TF32 does not change."""
    try:
        found = [ProblemNote.ROUNDING_NOISE] if noisy_outputs(reference) else []
        if reference.terms is None and reference.measured_bounds.chooses_alike_in_tf32:
            found.append(ProblemNote.COARSE_CHOICE)
    except torch.OutOfMemoryError:  # then it is known in rows, whose memory is planned
        return
    reference.notes += [note for note in found if note not in reference.notes]
