"""Segments as long as any other, made to see what a player does outside its timed windows.

In one the flush is inspected, in others the inputs lie open for a while, and in one the last pieces of a launch's
inputs come as its window opens. What they give is `early`'s to judge.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Protocol

from harness.device.bench import Bench
from harness.inputs.incomplete import incomplete
from harness.inputs.sets import InputSet
from harness.referee import early, failures
from harness.referee.backlog import Backlog
from harness.referee.early import EarlyLook
from harness.referee.failures import Failed
from harness.referee.reference import Reference
from harness.referee.session import Session
from harness.referee.turns import Launches
from harness.verdict import ReasonCode, Status

# How often in a row an output has to be wrong where its inputs were completed late, and right elsewhere.
_WRONG_EACH_TIME = 3


class Verifier(Protocol):
    """Raises Failed unless the outputs of the launches `only` (numbers; None: all) are right."""

    def __call__(self, sets: Sequence[InputSet], made: Launches, only: Collection[int] | None = None) -> None: ...


def look_closely(
    session: Session, bench: Bench, reference: Reference, verify: Verifier, count: int, usual_us: Sequence[float],
    backlog: Backlog, *, hold: bool,
) -> tuple[EarlyLook, EarlyLook]:
    """What a call gains by inputs that lie open, and by inputs that are complete before their window.

    Segments have `count` launches, two at least; `usual_us` are times of calls. What one returned is verified while the
    player makes the next, by `backlog`, of which nothing is left in the end. Raises Failed where a flush was left out or
    an output is not right.
    """
    drawn: list[list[InputSet]] = []

    def draw() -> list[InputSet]:
        return [reference.draw() for _ in range(count)]

    def launch(sets: list[InputSet], **how: Any) -> Launches:
        bench.synchronize()
        return backlog.settling(lambda: session.launch(sets, hold=hold, meanwhile=backlog.work, **how))

    def segment(early_s: float, *, inspect: bool = False) -> list[float]:
        sets = drawn.pop() if drawn else draw()
        made = launch(sets, early_s=early_s, inspect=inspect)
        backlog.add(lambda: verify(sets, made))
        backlog.add(lambda: drawn.append(draw()))
        return [launch.time_us for launch in made.launches[1:]]

    def completed_late() -> tuple[float, Sequence[float]]:
        """The time of the one launch, which is drawn but never the lead-in, and those of the ones before it.

        Those after it do not count: a candidate that has begun before knows then which one it was, and could be as slow
        for the rest of the segment. Where no two draws of the inputs differ it is a launch like any other.
        """
        failure = None
        for _ in range(_WRONG_EACH_TIME):
            sets, index = drawn.pop() if drawn else draw(), 1 + secrets.randbelow(count - 1)
            lacking = incomplete(sets[index], reference.draw(), index)
            made = launch(sets, incomplete=lacking)
            backlog.settle()  # what was wrong before comes first
            verify(sets, made, [other for other in range(count) if other != index])
            try:
                verify(sets, made, [index])
            except Failed as found:
                failure = failure or found
                if lacking is None:
                    raise
                continue
            if failure is not None:  # right this time, so perhaps wrong now and then whenever its inputs come
                reason = f"{failure.verdict.reason}; a part of the inputs came as the timed window opened"
                failure.verdict = replace(failure.verdict, reason=reason)
                raise failure
            times_us = [launch.time_us for launch in made.launches]
            return times_us[index], times_us[1:index]
        raise _begun_before(failure)

    segment(0.0, inspect=True)
    opened = early.look(segment, bench.kind, usual_us)
    completed = early.look_at_completed(completed_late, bench.kind, usual_us, lambda: segment(0.0))
    backlog.settle()
    return opened, completed


def _begun_before(failure: Failed) -> Failed:
    """The verdict where an output is wrong each time its inputs are completed late, as `failure` says, and else right.
    """
    return failures.failed(
        Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
        "its output is wrong each time that a part of its inputs comes as the timed window opens, and right "
        "otherwise: something of it (another stream, a thread, a waiting kernel) begins to work before its time "
        f"({failure.verdict.reason})",
    )
