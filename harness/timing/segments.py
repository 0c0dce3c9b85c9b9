"""Parts of a round: segments of the candidate in its worker and of strict eager here, in the same slots, on inputs that
are drawn while a worker is busy.

A segment is several launches of one arm in a row. `rounds` decides which parts there are, and what they amount to.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.device.backend import Backend, LocalTimes
from harness.launch.session import Session
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.deferred_work import DeferredWork
from harness.timing.in_worker_baseline import InWorkerBaseline
from harness.timing.probes.runner import ProbeRunner, Verifier
from harness.timing.probes.schedule import Probe
from harness.timing.timings import HalfRound

_LEAD_IN_ONE_OF = 4


class SegmentRunner:
    """Makes the segments for one candidate; `verify` judges the outputs of each segment and raises when one is wrong.

    `gate` says whether queues are gated: once one of them was late none is. `counts` are the launches of a segment of
    either arm, `lead_ins` with them, `in_worker` the baseline in the worker, and `probe_runner` makes the probes.
    `waits` says whether it was the candidate's own queue that was late.
    """

    def __init__(
        self, session: Session, backend: Backend, reference: Reference, verify: Verifier, *, is_probed: bool = True
    ) -> None:
        self._session, self._backend, self._reference, self._verify = session, backend, reference, verify
        self.gate, self.in_worker = backend.limits.gates_queues, InWorkerBaseline()
        self.waits = False
        self.counts = {"A": 2, "B": 2}
        self.lead_ins = 1  # of the candidate's segments; the baseline's always have one
        self._of_baseline: list[InputSet] = []
        self._drawn: list[InputSet] = []  # for the next segment of the candidate's
        self._deferred = DeferredWork(backend.synchronize)
        self.probe_runner = ProbeRunner(
            session, backend, reference, verify, self._deferred, self._take, tuple(Probe) if is_probed else ()
        )
        self._usual_us: list[float] = []  # times of the candidate's last segment
        self._usual_gated = False

    @property
    def state(self) -> tuple[bool, InWorkerBaseline]:
        """Whether queues are gated, and what became of the baseline in the worker, as they are now; `gate` and `in_worker` take it."""
        return self.gate, replace(self.in_worker)

    def restore(self, gate: bool, in_worker: InWorkerBaseline) -> None:
        """Have both as they were in an earlier `state`, of which no time is held against what comes."""
        self.gate, self.in_worker = gate, in_worker
        self._usual_us = []  # they may be of a queue that ran dry

    def use(self, counts: Mapping[str, int]) -> None:
        """Have so many launches in each segment; there is room for as many as there were."""
        self._deferred.settle()
        self.counts, self._drawn, self._usual_us = dict(counts), [], []
        self.prepare()

    def settle(self) -> None:
        """Verify what is still to be verified. Raises Failed for what was found wrong."""
        self._deferred.settle()

    def prepare(self) -> None:
        """Have what probes take besides ready, for segments of that length."""
        if self.probe_runner.possible:
            self.probe_runner.prepare(self._reference.draw(), self.counts["A"])

    def launches_of_baseline(self, segments: int) -> int:
        """How many there are in so many segments that are made as one, with its lead-in."""
        return 1 + segments * (self.counts["B"] - 1)

    def make(self, order: str, *, gate: bool, probe: Probe | None = None, synchronised: bool = False) -> HalfRound:
        """Make segments of the arms in `order`, one of them A's, in the same slots, and leave out their lead-ins; BB is one
        segment.

        The candidate's inputs are drawn anew. Eager has its own, drawn once: they lie in slots that the worker can
        read, and are nobody's secret. The outputs are verified later, before the next are taken. Before A comes what is
        looked at, if anything.
        """
        drawn, own = self._begin(order, gate=gate)
        made, local, in_worker_us, is_tight = None, None, [], self._reference.memory.tight
        for arm in _segments(order):
            is_last = arm == order.strip("B")[-1]
            if arm == "A" and probe is not None:
                self._draw_ahead_if(is_last and gate)
                self._probe(probe, drawn)
                drawn = self._take()
            self._draw_ahead_if(is_last and gate)
            if arm == "A":
                made = self._deferred.settling(lambda: self._session.launch(
                    drawn, gate=gate, meanwhile=self._deferred.work, synchronised=synchronised
                ))
                if is_tight:
                    self._deferred.add(functools.partial(self._verify, drawn, made, self._to_verify(len(drawn))))
                    self._deferred.settle()  # before the baseline takes the memory
                if gate:  # Once one arm cannot be gated, neither is: a ratio with one launch overhead in it means nothing.
                    self.waits = made.hidden is False
                    self.gate = self.gate and not self.waits
            elif arm == "I":
                in_worker_us = self._time_in_worker(own, gate=gate and self.gate)
            else:
                local = self._own_launches(own, gate=gate and self.gate)
        self._deferred.settle()
        if not is_tight:
            self._deferred.add(lambda: self._verify(drawn, made, self._to_verify(len(drawn))))
        half = HalfRound(
            made.launches[self.lead_ins :], _cut(local.times_us[1:] if local else [], order.count("B")), made.tail_us,
            local.forward_us[1:] if local else [], in_worker_us,
        )
        if gate or not self.gate:
            self._usual_us, self._usual_gated = half.candidate_us, gate
        return half

    def _begin(self, order: str, *, gate: bool) -> tuple[list[InputSet], list[InputSet]]:
        """The inputs of the candidate's first segment of a part in that `order`, and those of eager's."""
        if not gate or order[0] == "B":  # no queue of the worker's before the judge's own
            self._deferred.settle()
        drawn, own = self._take(), self._inputs_of_baseline(order)
        self._backend.synchronize()
        return drawn, own

    def _probe(self, probe: Probe, drawn: list[InputSet]) -> None:
        # Times of a queue that was gated say nothing of one that is not.
        usual_us = self._usual_us if self._usual_gated == self.gate else []
        self.probe_runner.at(probe, drawn, usual_us, gate=self.gate)

    def probe_last(self, order: str, probe: Probe) -> None:
        """Look once more, where the candidate's first segment of a part in that `order` would be."""
        drawn, own = self._begin(order, gate=self.gate)
        for arm in _segments(order[: order.index("A")]):
            if arm == "I":
                self._time_in_worker(own, gate=self.gate)
            else:
                self._own_launches(own, gate=self.gate)
        # Of no use any more, but a probe begins as late as what it stands for.
        self._draw_ahead_if(order.strip("B")[-1] == "A")
        self._probe(probe, drawn)
        self._deferred.settle()

    def _own_launches(self, own: Sequence[InputSet], *, gate: bool) -> LocalTimes:
        if self._reference.memory.on_host:
            self._session.reopen()
        made = self._backend.local_launches(self._reference.model, own, gate=gate)
        self.gate = self.gate and made.hidden is not False
        if self._reference.memory.on_host:
            self._backend.release_memory()
        return made

    def _time_in_worker(self, own: Sequence[InputSet], *, gate: bool) -> list[float]:
        return self.in_worker.times_us(self._session, self._deferred, own, gate=gate)

    def _to_verify(self, count: int) -> Collection[int] | None:
        """Which of `count` launches are verified: all that are timed, and of lead-ins, which are not, one in four."""
        return None if secrets.randbelow(_LEAD_IN_ONE_OF) == 0 else range(self.lead_ins, count)

    def _take(self) -> list[InputSet]:
        """Inputs for one segment of the candidate's."""
        drawn, self._drawn = self._drawn or self._draw(), []
        return drawn

    def _draw(self) -> list[InputSet]:
        return [self._reference.draw() for _ in range(self.counts["A"])]

    def _draw_ahead_if(self, is_time: bool) -> None:
        """Have the candidate's next inputs drawn while the worker makes its queue, where that is gated."""
        if is_time and self.gate:
            self._deferred.add(self._draw_ahead)

    def _draw_ahead(self) -> None:
        self._drawn = self._draw()

    def _inputs_of_baseline(self, order: str) -> list[InputSet]:
        count = self.launches_of_baseline(2 if "BB" in order else 1)
        while len(self._of_baseline) < count:
            self._of_baseline.append(self._reference.draw())
        return self._of_baseline[:count]


def _cut(times_us: list[float], segments: int) -> list[list[float]]:
    """The times of so many segments of equal length that were made as one: each is to count as any other does."""
    length = len(times_us) // max(segments, 1)
    return [times_us[index * length : (index + 1) * length] for index in range(segments)]


def _segments(order: str) -> Iterable[str]:
    """The arms of `order` by segments: B once where two of it are one."""
    return order.replace("BB", "B")
