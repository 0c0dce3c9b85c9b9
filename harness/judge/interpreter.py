"""Candidates that Triton's own interpreter runs on the CPU, where there is no GPU: right or wrong, and nothing more.

The interpreter runs the programs of a kernel one after the other, in Python. It knows of no shared memory and of no
programs that run at once, so it shows that a kernel's arithmetic is wrong, and never how fast it is. Sizes are the
problem's own, as far as they are small; what only a GPU can do is not held against the candidate.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.device.backend import Backend
from harness.judge import check
from harness.judge.judgement import Judgement, Prepared, Start, Tell
from harness.judge.loader import Loader, blaming_the_state
from harness.judge.machine_lacks import takes_a_gpu
from harness.judge.references import MOST_ELEMENTS
from harness.launch import failures
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.model.spelling import listed
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.reference.reference_model import Reference

# No further size is begun after so long; the limits of a single call are those of the settings.
_BUDGET_S = 60.0


def interpret(
    backend: Backend, prepared: Prepared, start: Start, references: Sequence[Reference], model_seed: int,
    settings: Settings, judgement: Judgement, tell: Tell,
) -> Verdict:
    """Check `prepared`, in the process that `start` starts, at the sizes of `references`, the smallest first.

    Error figures and warnings go to `judgement`. Returns `checked`, with the sizes; raises Failed, with `skipped` for
    what takes a GPU to find out.
    """
    if not references:
        raise failures.failed(
            Status.SKIPPED, ReasonCode.NO_GPU,
            f"there is no GPU here, and Triton's interpreter is given calls of up to {MOST_ELEMENTS:,} elements: none of the "
            "problem's sizes is that small. Add one under sizes: check: in its YAML, or name one with --sizes",
        )
    session = Session(start(), backend, settings.load_timeout_s, settings.launch_timeout_s)
    session.ends_s = judgement.ends_s
    try:
        tell("loading it for Triton's interpreter")
        reload = Loader(session, prepared, model_seed)
        with blaming_the_state(reload, judgement):
            return _checked(session, prepared, references, reload, settings, judgement, tell)
    except Failed as failure:
        if not takes_a_gpu(failure, prepared):
            raise
        raise failures.failed(
            Status.SKIPPED, ReasonCode.NO_GPU,
            f"Triton's interpreter could not run it ({failure.verdict.reason}), and there is no GPU here that could",
        ) from None
    finally:
        session.stop()


def _checked(
    session: Session, prepared: Prepared, references: Sequence[Reference], reload: Loader, settings: Settings,
    judgement: Judgement, tell: Tell,
) -> Verdict:
    """The verdict after all sizes, or after those for which there was time. Raises Failed."""
    checked, refused, too_long = [], [], []
    first_timeout_s, began = settings.launch_timeout_s + settings.load_timeout_s, time.monotonic()
    for position, reference in enumerate(references):
        if checked and time.monotonic() - began > _BUDGET_S:
            too_long = references[position:]
            break
        before = len(judgement.figures)
        reload(reference)
        tell(f"checking it in Triton's interpreter at {_sizes_of(reference)}")
        try:
            check.check_at(
                session, reference, reference.families, prepared.precision_class, first_timeout_s, judgement.figures
            )
        except Failed as failure:
            if failure.verdict.status is Status.TIMED_OUT:  # its process has gone with it
                del judgement.figures[before:]
                too_long = references[position:]
                break
            if not failure.refusal or takes_a_gpu(failure, prepared):
                raise
            refused.append(f"{_sizes_of(reference)} ({failure.verdict.reason})")
        else:
            checked.append(reference)
    if not checked:
        raise failures.failed(Status.SKIPPED, ReasonCode.NO_GPU, _why_none(refused, too_long))
    check.decide(judgement.figures, checked[-1], prepared.precision_class)
    if refused:
        judgement.warnings.append(f"it refuses sizes that the problem names: {'; '.join(refused)}")
    if too_long:
        judgement.warnings.append(f"Triton's interpreter had no time for {listed(list(map(_sizes_of, too_long)))}")
    return Verdict(
        Status.CHECKED, ReasonCode.INTERPRETED,
        f"right at {listed(list(map(_sizes_of, checked)))}, in Triton's interpreter on the CPU; there is no GPU here to "
        "time it",
    )


def _why_none(refused: Sequence[str], too_long: Sequence[Reference]) -> str:
    if too_long:
        return (
            f"Triton's interpreter did not get through a call at {_sizes_of(too_long[0])}, as where programs wait for each "
            "other, and there is no GPU here"
        )
    return f"it refuses all sizes that Triton's interpreter is given, and there is no GPU here: {'; '.join(refused)}"


def _sizes_of(reference: Reference) -> str:
    return sizes_text(reference.sizes) or "the reference's own sizes"
