"""The error figures of launches, from the whole of what is expected, from strict eager near it, or slice by slice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from harness.launch.conversation import Launches
from harness.launch.failures import Failed, failed
from harness.launch.session import Session
from harness.model.device_limits import limits_of
from harness.model.verdict import ReasonCode, Status
from harness.reference.accuracy.classes import ErrorFigures, excess
from harness.reference.error_figures import Returned, is_drawn, judge_launches, judge_outputs, near_eager
from harness.reference.evidence import Evidence, Spread
from harness.reference.evidence_collector import recipe_of
from harness.reference.inputs.families import GIVEN
from harness.reference.inputs.sets import Inputs, InputSet
from harness.reference.reference_model import Reference

# Room for the truths of launches that are verified together: a share of a device's memory, and at least so much.
_TOGETHER_SHARE, _TOGETHER_LEAST_BYTES = 1 / 64, 256 << 20
_TOLD = 200  # characters of what a worker says that it returned


def launches_at_once(reference: Reference) -> int:
    """Of how many launches all is computed before one answer is waited for: as many as their truths have room."""
    if limits_of(reference.device.type).is_host or reference.truth_bytes is None or reference.memory.tight:
        return 1
    memory_bytes = torch.cuda.get_device_properties(reference.device).total_memory
    room_bytes = max(_TOGETHER_LEAST_BYTES, _TOGETHER_SHARE * memory_bytes)
    return max(1, int(room_bytes / max(1, reference.truth_bytes)))


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


def figures_of(
    session: Session, reference: Reference, sets: Sequence[InputSet], made: Launches, sound: Sequence[int],
    precision_class: str, with_eager: bool, where: str,
) -> list[ErrorFigures]:
    """The figures of the launches numbered `sound`, at the sizes that `where` names. Raises Failed for plain values."""
    if reference.is_compared_in_slices:
        return [
            judge_in_slices(
                reference, sets[index], session.outputs(reference, index), precision_class,
                in_part=_is_in_part(reference, sets[index], with_eager),
            )
            for index in sound
        ]
    known = {}
    for index in sound:
        if _is_in_part(reference, sets[index], with_eager) and not is_drawn(reference.float64_one_of):
            known[index] = _near_eager(session, reference, sets[index], made, index, precision_class)
    others = [index for index in sound if known.get(index) is None]
    returned = []
    for index, truth in zip(others, reference.truths([sets[index] for index in others], with_eager=with_eager)):
        values = made.launches[index].values
        if truth.values is not None and not _same_values(values, truth.values):
            raise with_recipe(failed(
                Status.INCORRECT, ReasonCode.WRONG_VALUES,
                f"forward returned the values {str(values)[:_TOLD]} where the reference returns {truth.values} ({where})",
            ), reference, sets, index)
        returned.append(Returned(sets[index], truth, _outputs(session, reference, index)))
    known |= dict(zip(others, judge_launches(reference, returned, precision_class)))
    return [known[index] for index in sound]


def _near_eager(
    session: Session, reference: Reference, inputs: InputSet, made: Launches, index: int, precision_class: str
) -> ErrorFigures | None:
    """The figures of launch `index` around strict eager, None where it is not near; nothing of eager's outputs is kept."""
    beside = Returned(inputs, reference.by_eager(inputs), _outputs(session, reference, index))
    if beside.truth.values is not None and not _same_values(made.launches[index].values, beside.truth.values):
        return None
    return near_eager(reference, [beside], precision_class)[0]


def _is_in_part(reference: Reference, inputs: InputSet, with_eager: bool) -> bool:
    """Whether not all outputs are held against their truth: those of checks, for which eager's errors are wanted too, are."""
    return not with_eager and inputs.family is GIVEN and reference.float64_one_of > 1


def _outputs(session: Session, reference: Reference, index: int) -> list[torch.Tensor]:
    return [output.to(reference.device) for output in session.outputs(reference, index)]


def with_recipe(failure: Failed, reference: Reference, sets: Sequence[InputSet], index: int) -> Failed:
    """The failure of launch `index`, with the recipe of it."""
    failure.evidence = Evidence(recipe_of(reference, sets, index))
    return failure


def _same_values(got: Sequence[object], expected: Sequence[object]) -> bool:
    """Plain values among the outputs: floats to a relative 1e-6, everything else exactly."""
    if len(got) != len(expected):
        return False
    return all(
        _is_close(own, other) if isinstance(other, float) and isinstance(own, (int, float))
        else type(own) is type(other) and own == other
        for own, other in zip(got, expected)
    )


def _is_close(own: float, other: float) -> bool:
    try:
        return math.isclose(own, other, rel_tol=1e-6) or (math.isnan(own) and math.isnan(other))
    except OverflowError:  # a whole number that no float holds
        return False


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
        if in_part and not is_drawn(reference.float64_one_of):
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
