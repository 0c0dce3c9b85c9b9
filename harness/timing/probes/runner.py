"""Segments as long as any other, made to see what a worker does outside its timed windows.

In one the flush is inspected, in another the inputs lie open for a while, in one the last pieces of a launch's inputs
come as its window opens, and in one a launch has inputs of another family: who knows how they are drawn could do with
less for them. In one, on a GPU, the kernels are recorded. Which comes when is `schedule`'s, and what they give
`result`'s to judge.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from harness.device.bench import Bench
from harness.launch import failures
from harness.launch.conversation import Launches
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.verdict import ReasonCode, Status
from harness.reference.inputs.deferred import DeferredInputs, deferred_inputs
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.deferred_work import DeferredWork
from harness.timing.probes import result
from harness.timing.probes.result import ProbeResult, worse
from harness.timing.probes.schedule import Probe

# How often in a row an output has to be wrong where its inputs were completed late, and right elsewhere.
_WRONG_EACH_TIME = 3


class Verifier(Protocol):
    """Raises Failed unless the outputs of the launches `only` (numbers; None: all) are right."""

    def __call__(self, sets: Sequence[InputSet], made: Launches, only: Collection[int] | None = None) -> None: ...


@dataclass(frozen=True)
class _WithDeferred:
    """Inputs for launch `index` of a segment, and what they lack until its window; None where no two draws differ."""

    inputs: InputSet
    index: int
    lacking: DeferredInputs | None


class ProbeRunner:
    """Looks at the worker of one candidate; `early_read_probe`, `late_input_probe` and `input_value_probe` are what
    says most against it so far, and `recorded` the launches of which the kernels were recorded.

    `take` gives inputs for one segment that nobody has seen. What a probe takes besides is worked out long before: a
    segment that took longer to begin would be told by that. Outputs are verified by `deferred_work` while the worker
    makes the segment after them.
    """

    def __init__(
        self, session: Session, bench: Bench, reference: Reference, verify: Verifier, deferred_work: DeferredWork,
        take: Callable[[], list[InputSet]],
    ) -> None:
        self._session, self._bench, self._reference = session, bench, reference
        self._verify, self._deferred, self._take = verify, deferred_work, take
        self._given: list[InputSet] | None = None
        self._ready: _WithDeferred | None = None
        self._other: InputSet | None = None
        self._gate = False
        self.early_read_probe: ProbeResult | None = None
        self.late_input_probe: ProbeResult | None = None
        self.input_value_probe: ProbeResult | None = None
        self.recorded: list[Launches] = []

    def prepare(self, inputs: InputSet, count: int) -> None:
        """Have `inputs` ready as the incomplete ones of a segment of `count` launches, and a set of another family; and
        others whenever they were used.
        """
        self._prepare_deferred(inputs, count)
        self._prepare_other()

    def _prepare_deferred(self, inputs: InputSet, count: int) -> None:
        if not self._reference.memory.tight:  # there, it is worked out when it is used
            self._ready = self._deferred_inputs(inputs, count)

    def at(self, what: Probe, drawn: list[InputSet], usual_us: Sequence[float], *, gate: bool) -> None:
        """Look at `what`, in a segment on the inputs `drawn`, of which what is ready may take the place of one.

        There are two of them at least. `usual_us` are times of calls in the segment before; where there are none it is
        made. Raises Failed where a flush was left out or an output is not right.
        """
        self._given, self._gate = drawn, gate
        limits = self._bench.limits.probe if gate else self._bench.limits.ungated_probe
        if what is Probe.FLUSH:
            self._segment(0.0, inspect=True)
            return
        if what is Probe.KERNELS:
            self._segment(0.0, record=True)
            return
        usual_us = usual_us or self._segment(0.0)
        # Where the device waits for the host in each call, a window that opens late lets the host run ahead.
        early_s = result.open_s(usual_us) if limits.waits_for_host else 0.0

        def at_one(launches: Callable[[float], tuple[float, Sequence[float]]]) -> ProbeResult:
            return result.probe_one(lambda: launches(early_s), limits, usual_us, lambda: self._segment(early_s))

        if what is Probe.INPUT_VALUE:
            self.input_value_probe = worse(self.input_value_probe, at_one(self._of_other_values))
        elif what is Probe.LATE_INPUT or limits.waits_for_host:
            self.late_input_probe = worse(self.late_input_probe, at_one(self._late_inputs))
        else:
            self.early_read_probe = worse(self.early_read_probe, result.probe(self._segment, limits, usual_us))

    def _next(self) -> list[InputSet]:
        given, self._given = self._given, None
        return self._take() if given is None else given

    def _deferred_inputs(self, inputs: InputSet, count: int) -> _WithDeferred:
        index = 1 + secrets.randbelow(count - 1)
        return _WithDeferred(inputs, index, deferred_inputs(inputs, self._reference.draw(), index))

    def _launch(self, sets: list[InputSet], **how: Any) -> Launches:
        self._bench.synchronize()
        made = self._deferred.settling(
            lambda: self._session.launch(sets, gate=self._gate, meanwhile=self._deferred.work, **how)
        )
        self._deferred.settle()
        return made

    def _segment(self, early_s: float, **how: Any) -> list[float]:
        sets = self._next()
        made = self._launch(sets, early_s=early_s, **how)
        self.recorded += [made] if made.recording is not None else []
        self._deferred.add(lambda: self._verify(sets, made))
        if self._reference.memory.tight:
            self._deferred.settle()
        return [launch.time_us for launch in made.launches[1:]]

    def _prepare_other(self) -> None:
        if self._reference.timed_families:
            self._other = self._draw_other()

    def _draw_other(self) -> InputSet:
        return self._reference.draw(secrets.choice(self._reference.timed_families))

    def _of_other_values(self, early_s: float) -> tuple[float, Sequence[float]]:
        """The time of the one launch, which is drawn but never the lead-in, and those of the ones before it. The inputs of
        all lie open for `early_s`.
        """
        drawn, ready, self._other = self._next(), self._other, None
        index = 1 + secrets.randbelow(len(drawn) - 1)
        sets = [*drawn[:index], ready or self._draw_other(), *drawn[index + 1 :]]
        made = self._launch(sets, early_s=early_s)
        if ready is not None:
            self._deferred.add(self._prepare_other)
        self._verify(sets, made)
        times_us = [launch.time_us for launch in made.launches]
        return times_us[index], times_us[1:index]

    def _late_inputs(self, early_s: float) -> tuple[float, Sequence[float]]:
        """The time of the one launch, which is drawn but never the lead-in, and those of the ones before it. What of the
        inputs is there before their window lies open for `early_s`.

        Those after it do not count: a candidate that has begun before knows then which one it was, and could be as slow
        for the rest of the segment. Where no two draws of the inputs differ it is a launch like any other.
        """
        failure = None
        for _ in range(_WRONG_EACH_TIME):
            drawn, ready, self._ready = self._next(), self._ready, None
            used = ready or self._deferred_inputs(self._reference.draw(), len(drawn))
            index = used.index
            sets = [*drawn[:index], used.inputs, *drawn[index + 1 :]]
            made = self._launch(sets, early_s=early_s, deferred_inputs=used.lacking)
            if ready is not None:  # those in whose place they came have been seen by nobody
                self._deferred.add(functools.partial(self._prepare_deferred, drawn[index], len(drawn)))
            self._verify(sets, made, [other for other in range(len(sets)) if other != index])
            try:
                self._verify(sets, made, [index])
            except Failed as found:
                failure = failure or found
                if used.lacking is None:
                    raise
                continue
            if failure is not None:  # right this time, so perhaps wrong now and then whenever its inputs come
                reason = f"{failure.verdict.reason}; a part of the inputs came as the timed window opened"
                failure.verdict = replace(failure.verdict, reason=reason)
                raise failure
            times_us = [launch.time_us for launch in made.launches]
            return times_us[index], times_us[1:index]
        raise _begun_before(failure)


def _begun_before(failure: Failed) -> Failed:
    """The verdict where an output is wrong each time its inputs are completed late, as `failure` says, and else right.
    """
    return failures.failed(
        Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
        "its output is wrong each time that a part of its inputs comes as the timed window opens, and right "
        "otherwise: something of it (another stream, a thread, a waiting kernel) begins to work before its time "
        f"({failure.verdict.reason})",
    )
