"""The baseline in the candidate's own process: timed there as long as that works, and why it does not."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.launch.conversation import LATE, Launches
from harness.launch.session import Session
from harness.model.device_limits import DeviceLimits
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.deferred_work import DeferredWork
from harness.timing.stats import margin
from harness.timing.timings import HalfRound

# A candidate and a baseline that are apart by less than this share take as long as each other.
_AS_LONG = 0.1


def is_short(sizing: HalfRound, limits: DeviceLimits) -> bool:
    """Whether what a process adds to a launch is anything beside the baseline's time."""
    return statistics.median(sizing.baseline_us) < limits.in_worker_below_us


def shows_in_worker_baseline(sizing: HalfRound, limits: DeviceLimits, half_width: float) -> bool:
    """Whether the baseline in the worker would tell anything of what the worker's process adds to the candidate."""
    if is_short(sizing, limits) or not limits.process_adds:
        return is_short(sizing, limits)
    candidate_us, baseline_us = map(statistics.median, (sizing.candidate_us, sizing.baseline_us))
    return half_width <= margin(baseline_us) and abs(candidate_us / baseline_us - 1) < _AS_LONG


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
        """One per set but the lead-in, none once that failed; what is deferred is done meanwhile. Raises Failed."""
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
