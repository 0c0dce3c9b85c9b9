"""Segments as long as any other, made to see what a worker does outside its timed windows.

This module makes such a segment. `kinds` says what each probe makes of it, and `schedule` draws when it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from harness.device.backend import Backend
from harness.launch.conversation import Launches
from harness.launch.session import Session
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.deferred_work import DeferredWork
from harness.timing.probes.kinds import KINDS
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe


class Verifier(Protocol):
    """Raises Failed unless the outputs of the launches `only` (numbers; None: all) are right."""

    def __call__(self, sets: Sequence[InputSet], made: Launches, only: Collection[int] | None = None) -> None: ...


class ProbeRunner:
    """The probes of one candidate's worker, those of `wanted` that are `possible` here, and the segments that they claim;
    `recorded` are the launches of which the kernels were recorded.

    `take` gives inputs for one segment that nobody has seen. What a probe takes besides is worked out long before: a
    segment that took longer to begin would be told by that. Outputs are verified by `deferred_work` while the worker
    makes the segment after them.
    """

    def __init__(
        self, session: Session, backend: Backend, reference: Reference, verify: Verifier, deferred_work: DeferredWork,
        take: Callable[[], list[InputSet]], wanted: Collection[Probe] = tuple(Probe),
    ) -> None:
        self._session, self._backend, self.reference = session, backend, reference
        self.verify, self.deferred_work, self._take = verify, deferred_work, take
        self._given: list[InputSet] | None = None
        self._gate = False
        self.recorded: list[Launches] = []
        self._probes = {what: KINDS[what](self) for what in wanted}
        self.possible = [what for what in wanted if KINDS[what].is_possible(reference, backend.limits)]

    @property
    def results(self) -> Mapping[Probe, ProbeResult]:
        """Of each probe that holds times against each other what says most against the candidate so far."""
        return {what: probe.result for what, probe in self._probes.items() if probe.result is not None}

    def prepare(self, inputs: InputSet, count: int) -> None:
        """Have what probes take besides ready for segments of `count` launches; `inputs` are drawn for that."""
        for what in self.possible:
            self._probes[what].prepare(inputs, count)

    def at(self, what: Probe, drawn: list[InputSet], usual_us: Sequence[float], *, gate: bool) -> None:
        """Look at `what`, in a segment on the inputs `drawn`, of which what is ready may take the place of one.

        There are two of them at least. `usual_us` are times of calls in the segment before; where there are none it is
        made. Raises Failed where a flush was left out or an output is not right.
        """
        self._given, self._gate = drawn, gate
        limits = self._backend.limits.probe if gate else self._backend.limits.ungated_probe
        if what is Probe.EARLY_READ and limits.waits_for_host:
            what = Probe.LATE_INPUT  # an honest call too gains by open inputs there, and this tells both
        self._probes[what].make(usual_us, limits)

    def next(self) -> list[InputSet]:
        """Inputs for the segment that is made now: those that were given for it, then others."""
        given, self._given = self._given, None
        return self._take() if given is None else given

    def launch(self, sets: list[InputSet], **how: Any) -> Launches:
        """Make a launch for each of `sets`, as a segment that is timed is made; `how` as in `Session.launch`."""
        self._backend.synchronize()
        made = self.deferred_work.settling(
            lambda: self._session.launch(sets, gate=self._gate, meanwhile=self.deferred_work.work, **how)
        )
        self.deferred_work.settle()
        return made

    def segment(self, early_s: float, **how: Any) -> list[float]:
        """Make a whole segment, verified later. Returns its times in µs without the lead-in."""
        sets = self.next()
        made = self.launch(sets, early_s=early_s, **how)
        self.recorded += [made] if made.recording is not None else []
        self.deferred_work.add(lambda: self.verify(sets, made))
        if self.reference.memory.tight:
            self.deferred_work.settle()
        return [launch.time_us for launch in made.launches[1:]]
