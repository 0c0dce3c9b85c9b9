"""A launch held against its expected output slice by slice, where that is too large to be there as a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from harness.launch.session import Session
from harness.reference.accuracy.classes import ErrorFigures, excess
from harness.reference.error_figures import Returned, is_drawn, judge_launches, judge_outputs, near_eager
from harness.reference.evidence import Evidence, Spread
from harness.reference.evidence_collector import recipe_of
from harness.reference.inputs.sets import Inputs
from harness.reference.reference_model import Reference


def judge_launch(
    session: Session, reference: Reference, inputs: Inputs, index: int, precision_class: str
) -> ErrorFigures:
    """The figures of launch `index`, from the whole of its truth or slice by slice, as there is room."""
    if reference.memory.on_host:
        session.make_room()
    outputs = session.outputs(reference, index)
    if reference.is_compared_in_slices:
        return judge_in_slices(reference, inputs, outputs, precision_class)
    truth = reference.truth(inputs, with_eager=False)
    return judge_outputs(reference, inputs, truth, [each.to(reference.device) for each in outputs], precision_class)


def judge_in_slices(
    reference: Reference, inputs: Inputs, outputs: Sequence[torch.Tensor], precision_class: str, *, in_part: bool = False
) -> ErrorFigures:
    """The figures of the slice that is furthest over its bounds, or nearest to them, each judged as a launch of its own.

    `in_part` has the truth of some of them made, which are drawn now that the outputs are there; the others are held against
    strict eager first, and against the truth where they are not near to that. Places are those of the whole output.
    """
    worst: tuple[ErrorFigures, int] | None = None
    for stretch, part, rows in reference.in_slices(inputs, outputs):
        figures = None
        if in_part and not is_drawn():
            (figures,) = near_eager(reference, [Returned(part, reference.by_eager(part), rows)], precision_class)
        if figures is None:
            (figures,) = judge_launches(reference, [Returned(part, reference.truth(part), rows)], precision_class)
        if worst is None or excess(figures) > excess(worst[0]):
            worst = figures, stretch.start
    figures = _in_the_whole(*worst, [output.shape for output in outputs])
    if figures.evidence is None:
        return figures
    return replace(figures, evidence=replace(figures.evidence, recipe=recipe_of(reference, [inputs])))


def _in_the_whole(figures: ErrorFigures, start: int, shapes: Sequence[torch.Size]) -> ErrorFigures:
    """`figures` of a slice that begins at `start` of axis 0, with places counted in the outputs of these `shapes`."""
    if figures.worst_index:
        first, *others = figures.worst_index
        figures = replace(figures, worst_index=(first + start, *others))
    if figures.evidence is None or figures.evidence.mistakes is None:
        return figures
    return replace(figures, evidence=_moved(figures.evidence, start, shapes[figures.evidence.mistakes.output]))


def _moved(evidence: Evidence, start: int, shape: torch.Size) -> Evidence:
    mistakes = evidence.mistakes
    first = tuple(replace(each, index=(each.index[0] + start, *each.index[1:])) for each in mistakes.first)
    axis = {1: "columns", 2: "rows"}.get(len(shape), "batches")  # where axis 0 is counted; outer axes are batches together
    size = math.prod(shape[: max(1, len(shape) - 2)])
    spread: Spread = getattr(mistakes, axis)
    by = start * size // shape[0]
    moved = replace(spread, size=size, first=spread.first + by, last=spread.last + by)
    return replace(evidence, mistakes=replace(
        mistakes, shape=tuple(shape), elements=math.prod(shape), first=first, **{axis: moved}
    ))
