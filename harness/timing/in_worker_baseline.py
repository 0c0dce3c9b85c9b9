"""The baseline in the candidate's own process: timed there as long as that works, and why it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.launch.conversation import LATE, Launches
from harness.launch.session import Session
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.deferred_work import DeferredWork


@dataclass
class InWorkerBaseline:
    """Whether it is timed, and `fault`, why it is not where it was to be."""

    is_timed: bool = False
    fault: str | None = None

    def load(self, session: Session, reference: Reference) -> None:
        """Have the worker construct the reference too. Raises Failed."""
        self.is_timed = session.load_reference(reference)
        self.fault = None if self.is_timed else "it cannot be loaded there"

    def times_us(self, session: Session, deferred_work: DeferredWork, sets: Sequence[InputSet], *, gate: bool) -> list[float]:
        """One per set but the first, which leads in; none any more where that failed, whoever's doing it was.

        What is in the backlog is done meanwhile. Raises Failed where the process is of no use now.
        """
        if not self.is_timed:
            return []
        made = deferred_work.settling(lambda: session.time_reference(sets, gate=gate, meanwhile=deferred_work.work))
        fault = _fault_of(made)
        if fault is not None:
            self.is_timed, self.fault = False, fault
            return []
        return [launch.time_us for launch in made.launches[1:]]


def _fault_of(made: Launches | str) -> str | None:
    """Why a queue is no time of the baseline; None where it is one."""
    if isinstance(made, str):
        return made
    if any(launch.fault for launch in made.launches):
        return "its outputs could not be taken there"
    return LATE if made.hidden is False else None
