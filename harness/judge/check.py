"""Whether a candidate is right: every launch's form, values and inputs, over all families and sizes.

`verify` judges launches that were made, timed or not; `check_all` makes the ones that the rule asks for before any
time is taken. A mistake in logic ends the check at once; lost precision is followed through all families, so that
its class can be named.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from harness.judge.launch_figures import figures_of, launches_at_once, with_recipe
from harness.launch import failures
from harness.launch.conversation import Launches
from harness.launch.session import Session
from harness.model.sizes_text import sizes_text
from harness.model.verdict import ReasonCode, Status
from harness.reference.accuracy.classes import ErrorFigures, classify, reason, telling
from harness.reference.evidence_collector import in_segment
from harness.reference.inputs.families import GIVEN, Family
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference

# At each size so many calls are made by themselves, which on a GPU have a guard behind their outputs: the first may
# allocate what the next ones have, and then the guard can say nothing.
_ALONE = 2
_LEAST_S = 1e-3
# What is said of launches that were made and reported. After anything else (a turn that came too early, a death) the
# worker is gone, or of no use for another queue.
_REPORTED = (Status.INCORRECT, Status.IMPRECISE)


def verify(
    session: Session, reference: Reference, sets: Sequence[InputSet], made: Launches, precision_class: str,
    *, with_eager: bool = False, only: Collection[int] | None = None,
) -> list[ErrorFigures]:
    """Error figures of each launch, or of those whose numbers are in `only`; `with_eager` works out eager's own error for
    each, which is otherwise done only where the verdict depends on it. Raises Failed for a fault of form, for inputs
    written to, for lost values.
    """
    numbers = range(len(made.launches)) if only is None else sorted(only)
    figures, at_once = [], launches_at_once(reference)
    for start in range(0, len(numbers), at_once):
        batch = numbers[start : start + at_once]
        figures += _verify_together(session, reference, sets, made, batch, precision_class, with_eager)
    return figures


def _verify_together(
    session: Session, reference: Reference, sets: Sequence[InputSet], made: Launches, batch: Sequence[int],
    precision_class: str, with_eager: bool,
) -> list[ErrorFigures]:
    """The figures of the launches whose numbers are in `batch`. Raises Failed for what is wrong before any arithmetic.

    As if each were verified after the one before: what is wrong with a launch is only said where all before it are
    without fault.
    """
    where = sizes_text(reference.sizes) or "the reference's own sizes"
    fault, sound = None, []
    for index in batch:
        fault = _fault(made, index, where)
        if fault is not None:
            break
        sound.append(index)
    if reference.memory.tight:
        sound = [index for index in sound if index == len(made.launches) - 1]  # all have one outbox
    if reference.memory.on_host:
        session.make_room()
    figures = figures_of(session, reference, sets, made, sound, precision_class, with_eager, where)
    if fault is not None:
        raise with_recipe(fault, reference, sets, batch[len(sound)])
    return [
        each if each.evidence is None else replace(each, evidence=in_segment(each.evidence, sets, index))
        for index, each in zip(sound, figures)
    ]


def _fault(made: Launches, index: int, where: str) -> failures.Failed | None:
    """What was wrong with launch `index` whatever it returned."""
    launch = made.launches[index]
    if launch.fault is not None:
        return failures.from_fault(launch.fault, where)
    if not made.inputs_kept[index]:
        return failures.failed(
            Status.REJECTED, ReasonCode.INPUTS_WRITTEN, f"the inputs were written to during forward ({where})"
        )
    if launch.beyond is not None:
        return failures.failed(
            Status.INCORRECT, ReasonCode.MEMORY_ERROR,
            f"it writes beyond its output: {launch.beyond[0]} of the {launch.beyond[1]} bytes behind its end were "
            f"changed ({where})",
        )
    return None


def refuse_reordered(made: Launches) -> None:
    """Raise Failed where timed outputs lie in another order than the first call's: none was copied within the window."""
    if any(launch.reordered for launch in made.launches):
        raise failures.failed(
            Status.INCORRECT, ReasonCode.WRONG_LAYOUT,
            "its outputs lie in the reference's order of dimensions in the first call and in another in a timed one; "
            "return them in one order",
        )


def check_all(
    session: Session, references: Sequence[Reference], launches: int, precision_class: str,
    reload: Callable[[Reference], None], first_timeout_s: float, errors: list[ErrorFigures],
) -> list[str]:
    """Check at the timed sizes (`references[0]`, `launches` times as given) and at all the others.

    `reload(reference)` constructs the model for other sizes, and the first call at each may take `first_timeout_s`.
    Figures are added to `errors` as they come. Returns the sizes beyond the timed ones that the candidate refused with
    an exception of its own words, each with what it said. Raises Failed for what is not right.
    """
    refused = []
    for position, reference in enumerate(references):
        families = families_checked(reference, launches) if position == 0 else reference.families
        reload(reference)
        try:
            check_at(session, reference, families, precision_class, first_timeout_s, errors)
        except failures.Failed as failure:
            if position == 0 or not failure.refusal:
                raise
            refused.append(f"{sizes_text(reference.sizes)} ({failure.verdict.reason})")
    decide(errors, references[0], precision_class)
    return refused


def families_checked(reference: Reference, launches: int) -> list[Family]:
    """Of each launch that is checked at the timed sizes, what its inputs are."""
    return [*reference.families, *[GIVEN] * (launches - 1)]


def check_at(
    session: Session, reference: Reference, families: Sequence[Family], precision_class: str, first_timeout_s: float,
    errors: list[ErrorFigures],
) -> None:
    """Check one launch for each of `families` at the sizes of `reference`, for which the model is loaded.

    The first two calls are made by themselves, and the first may take `first_timeout_s`, since it may compile; the others
    are one queue, where they are short and there is room. Raises Failed, which is a refusal in the first call alone.
    """
    alone, together = families[:_ALONE], families[_ALONE:]
    most = max(1, min(len(together), reference.memory.launches)) if not reference.memory.tight else 1
    session.open(reference, most)
    took_s, calls = 0.0, 0
    try:
        for family in alone:
            began = time.monotonic()
            _check(session, reference, [family], precision_class, errors, None if calls else first_timeout_s)
            took_s, calls = time.monotonic() - began, calls + 1
        # The limit is for a queue: half of it must do for as many calls as this one, with its verification.
        at_once = max(1, min(most, int(session.launch_timeout_s / 2 / max(took_s, _LEAST_S))))
        for start in range(0, len(together), at_once):
            _check_together(session, reference, together[start : start + at_once], precision_class, errors)
    except failures.Failed as failure:
        failure.refusal = failure.refusal and not calls
        raise


def _check_together(
    session: Session, reference: Reference, families: Sequence[Family], precision_class: str, errors: list[ErrorFigures]
) -> None:
    """A queue of launches, one for each of `families`; where one is wrong, they are made one by one for its verdict."""
    before = len(errors)
    try:
        _check(session, reference, families, precision_class, errors)
    except failures.Failed as failure:
        if len(families) == 1 or failure.verdict.status not in _REPORTED:
            raise
        del errors[before:]
        for family in families:
            _check(session, reference, [family], precision_class, errors)
        raise


def _check(
    session: Session, reference: Reference, families: Sequence[Family], precision_class: str,
    errors: list[ErrorFigures], timeout_s: float | None = None,
) -> None:
    """A launch for each of `families`, whose figures go to `errors`. Raises Failed for a mistake in logic."""
    sets = list(map(reference.draw_ready, families))
    try:
        made = session.launch(sets, gate=False, timeout_s=timeout_s)
        figures = verify(session, reference, sets, made, precision_class, with_eager=True)
    finally:
        reference.forget_shown()
    for each in figures:
        errors.append(each)
        if classify([each], reference.terms) is None:
            raise wrong([each], reference)


def call_once(
    session: Session, reference: Reference, precision_class: str, reload: Callable[[Reference], None], timeout_s: float
) -> None:
    """One verified call at the sizes of `reference` after others were checked, with time to compile once more."""
    reload(reference)
    session.open(reference, 1)
    inputs = [reference.draw()]
    made = session.launch(inputs, gate=False, timeout_s=timeout_s)
    decide(verify(session, reference, inputs, made, precision_class), reference, precision_class)


def decide(figures: Sequence[ErrorFigures], reference: Reference, precision_class: str) -> None:
    """Raise Failed unless all figures are within the bounds of the class."""
    measured_class = classify(figures, reference.terms)
    if measured_class is None:
        raise wrong(figures, reference)
    if measured_class != precision_class:
        raise failures.failed(
            Status.IMPRECISE, ReasonCode.REDUCED_PRECISION, reason(figures, reference.terms),
            telling(figures, reference.terms).evidence,
        )


def wrong(figures: Sequence[ErrorFigures], reference: Reference) -> failures.Failed:
    """The verdict on a mistake in logic, naming the worst element."""
    lost = next((each for each in figures if each.got is not None and not math.isfinite(each.got)), None)
    code = ReasonCode.WRONG_VALUES if lost is None else ReasonCode.NOT_FINITE
    shown = telling(figures, reference.terms)
    return failures.failed(Status.INCORRECT, code, reason(figures, reference.terms), shown.evidence)
