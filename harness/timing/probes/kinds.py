"""The probes, each a class: what it makes of the segment that it claims, and what says most against the candidate so far.

A new probe has its class here and its entry in `KINDS`; `schedule` says when it comes, `result` whether times differ.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.launch import failures
from harness.launch.failures import Failed
from harness.model.device_limits import DeviceLimits, ProbeLimits
from harness.model.verdict import ReasonCode, Status
from harness.reference.inputs.late_inputs import LateInputs, late_inputs
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.probes import result
from harness.timing.probes.result import ProbeResult, worse
from harness.timing.probes.schedule import Probe

if TYPE_CHECKING:
    from harness.timing.probes.runner import ProbeRunner

# How often in a row an output has to be wrong where its inputs were completed late, and right elsewhere.
_WRONG_EACH_TIME = 3


class SegmentProbe:
    """One kind of probe at one worker, whose segments `runner` makes. `result` is None where it compares no times."""

    def __init__(self, runner: ProbeRunner) -> None:
        self._runner = runner
        self.result: ProbeResult | None = None

    @staticmethod
    def is_possible(reference: Reference, limits: DeviceLimits) -> bool:
        """Whether it can be made of that reference, on a device of such `limits`."""
        return True

    def prepare(self, inputs: InputSet, count: int) -> None:
        """Have what it takes besides ready long before, for a segment of `count` launches; `inputs` are drawn for that."""

    def make(self, usual_us: Sequence[float], limits: ProbeLimits) -> None:
        """Make its segments. `usual_us` are times of calls in the segment before, if any. Raises Failed."""
        raise NotImplementedError

    def _note(self, latest: ProbeResult) -> None:
        self.result = worse(self.result, latest)


class FlushProbe(SegmentProbe):
    """The flush is inspected, and whether outputs are written to after their window."""

    def make(self, usual_us: Sequence[float], limits: ProbeLimits) -> None:
        self._runner.segment(0.0, inspect=True)


class KernelProbe(SegmentProbe):
    """The kernels of a GPU are recorded."""

    @staticmethod
    def is_possible(reference: Reference, limits: DeviceLimits) -> bool:
        return limits.lists_kernels

    def make(self, usual_us: Sequence[float], limits: ProbeLimits) -> None:
        self._runner.segment(0.0, record=True)


class EarlyReadProbe(SegmentProbe):
    """The inputs of all launches lie open for a while before their windows."""

    def make(self, usual_us: Sequence[float], limits: ProbeLimits) -> None:
        self._note(result.probe(self._runner.segment, limits, usual_us or self._runner.segment(0.0)))


class OneLaunchProbe(SegmentProbe):
    """One launch, which is drawn but never the lead-in, has other inputs than those around it."""

    def make(self, usual_us: Sequence[float], limits: ProbeLimits) -> None:
        usual_us = usual_us or self._runner.segment(0.0)
        # Where the device waits for the host in each call, a window that opens late lets the host run ahead.
        early_s = result.open_s(usual_us) if limits.waits_for_host else 0.0
        self._note(result.probe_one(
            lambda: self._launches(early_s), limits, usual_us, lambda: self._runner.segment(early_s)
        ))

    def _launches(self, early_s: float) -> tuple[float, Sequence[float]]:
        """The time of the one launch and of those before it. Inputs that are there early lie open for `early_s`."""
        raise NotImplementedError


class InputValueProbe(OneLaunchProbe):
    """The one launch has inputs of another family: who knows how they are drawn could do with less for them."""

    def __init__(self, runner: ProbeRunner) -> None:
        super().__init__(runner)
        self._ready: InputSet | None = None

    @staticmethod
    def is_possible(reference: Reference, limits: DeviceLimits) -> bool:
        return bool(reference.timed_families)

    def prepare(self, inputs: InputSet, count: int) -> None:
        self._draw_ready()

    def _draw_ready(self) -> None:
        self._ready = self._drawn()

    def _drawn(self) -> InputSet:
        reference = self._runner.reference
        return reference.draw(secrets.choice(reference.timed_families))

    def _launches(self, early_s: float) -> tuple[float, Sequence[float]]:
        drawn, ready, self._ready = self._runner.next(), self._ready, None
        index = 1 + secrets.randbelow(len(drawn) - 1)
        sets = [*drawn[:index], ready or self._drawn(), *drawn[index + 1 :]]
        made = self._runner.launch(sets, early_s=early_s)
        if ready is not None:
            self._runner.deferred_work.add(self._draw_ready)
        self._runner.verify(sets, made)
        times_us = [launch.time_us for launch in made.launches]
        return times_us[index], times_us[1:index]


@dataclass(frozen=True)
class _WithLateInputs:
    """Inputs for launch `index` of a segment, and what they lack until its window; None where no two draws differ."""

    inputs: InputSet
    index: int
    lacking: LateInputs | None


class LateInputProbe(OneLaunchProbe):
    """The last pieces of the one launch's inputs come as its window opens.

    The launches after it do not count: a candidate that has begun before knows then which one it was, and could be as slow
    for the rest of the segment. Where no two draws of the inputs differ it is a launch like any other.
    """

    def __init__(self, runner: ProbeRunner) -> None:
        super().__init__(runner)
        self._ready: _WithLateInputs | None = None

    def prepare(self, inputs: InputSet, count: int) -> None:
        if not self._runner.reference.memory.tight:  # there, it is worked out when it is used
            self._ready = self._with_late_inputs(inputs, count)

    def _with_late_inputs(self, inputs: InputSet, count: int) -> _WithLateInputs:
        index = 1 + secrets.randbelow(count - 1)
        return _WithLateInputs(inputs, index, late_inputs(inputs, self._runner.reference.draw(), index))

    def _launches(self, early_s: float) -> tuple[float, Sequence[float]]:
        failure, runner = None, self._runner
        for _ in range(_WRONG_EACH_TIME):
            drawn, ready, self._ready = runner.next(), self._ready, None
            used = ready or self._with_late_inputs(runner.reference.draw(), len(drawn))
            index = used.index
            sets = [*drawn[:index], used.inputs, *drawn[index + 1 :]]
            made = runner.launch(sets, early_s=early_s, late_inputs=used.lacking)
            if ready is not None:  # those in whose place they came have been seen by nobody
                runner.deferred_work.add(functools.partial(self.prepare, drawn[index], len(drawn)))
            runner.verify(sets, made, [other for other in range(len(sets)) if other != index])
            try:
                runner.verify(sets, made, [index])
            except Failed as error:
                failure = failure or error
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
    """The verdict where an output is wrong each time its inputs come late, as `failure` says, and right elsewhere."""
    return failures.failed(
        Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
        "its output is wrong each time that a part of its inputs comes as the timed window opens, and right "
        "otherwise: something of it (another stream, a thread, a waiting kernel) begins to work before its time "
        f"({failure.verdict.reason})",
    )


KINDS: Mapping[Probe, type[SegmentProbe]] = {
    Probe.FLUSH: FlushProbe, Probe.EARLY_READ: EarlyReadProbe, Probe.LATE_INPUT: LateInputProbe,
    Probe.INPUT_VALUE: InputValueProbe, Probe.KERNELS: KernelProbe,
}
