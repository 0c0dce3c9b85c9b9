"""What happens to an entry in one worker process, top down: the stages that it passes, from load to stop.

What is cheap and ends most rows comes first: form and values over all families and sizes, then the clock, then whose
kernels ran. Nothing that was not verified is timed, and nothing is reported that was not measured.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from harness.judge import stages
from harness.judge.stages import Attempt
from harness.model.sizes_text import sizes_text
from harness.model.verdict import ReasonCode, Status, Verdict

Stage = Callable[[Attempt], None]  # adds to the attempt's judgement; raises Failed

# All that is done while the worker lives, in this order. A check that is added has its entry here.
STAGES: tuple[Stage, ...] = (
    stages.load, stages.check_outputs, stages.time_rounds, stages.audit_times, stages.attribute, stages.compare_clocks,
    stages.measure_extras,
)
# What is done when it has gone.
AFTERWARDS: tuple[Stage, ...] = (stages.audit_baseline,)
# Of an entry that is asked for without a time.
UNTIMED: tuple[Stage, ...] = (stages.load, stages.check_outputs)


def evaluate(attempt: Attempt) -> None:
    """Have the entry pass all stages, and end its worker. Raises Failed from the first stage that finds a fault."""
    try:
        for stage in STAGES:
            stage(attempt)
    finally:
        is_interrupted = isinstance(sys.exc_info()[1], KeyboardInterrupt)
        attempt.session.stop(None if is_interrupted else attempt.context.make_ready)
    for stage in AFTERWARDS:
        stage(attempt)


def check_only(attempt: Attempt) -> Verdict:
    """Return the verdict on the outputs alone, without a timed call, and end the worker. Raises Failed."""
    try:
        for stage in UNTIMED:
            stage(attempt)
    finally:
        attempt.session.stop()
    sizes = sizes_text(attempt.reference.sizes)
    return Verdict(
        Status.CHECKED, ReasonCode.NOT_TIMED, f"right{' at ' if sizes else ''}{sizes}; it was asked for without a time"
    )
