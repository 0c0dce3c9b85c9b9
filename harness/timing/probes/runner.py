"""Segments as long as any other, made to see what a player does outside its timed windows.

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
from harness.reference.inputs.deferred import Incomplete, incomplete
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.deferred_work import Backlog
from harness.timing.probes import result
from harness.timing.probes.result import EarlyLook, worse
from harness.timing.probes.schedule import Look

# How often in a row an output has to be wrong where its inputs were completed late, and right elsewhere.
_WRONG_EACH_TIME = 3


class Verifier(Protocol):
    """Raises Failed unless the outputs of the launches `only` (numbers; None: all) are right."""

    def __call__(self, sets: Sequence[InputSet], made: Launches, only: Collection[int] | None = None) -> None: ...


@dataclass(frozen=True)
class _Incomplete:
    """Inputs for launch `index` of a segment, and what they lack until its window; None where no two draws differ."""

    inputs: InputSet
    index: int
    lacking: Incomplete | None


class Looking:
    """Looks at the player of one candidate; `opened`, `completed` and `valued` are what says most against it so far, and
    `recorded` the launches of which the kernels were recorded.

    `take` gives inputs for one segment that nobody has seen. What a look takes besides is worked out long before: a
    segment that took longer to begin would be told by that. Outputs are verified by `backlog` while the player makes the
    segment after them.
    """

    def __init__(
        self, session: Session, bench: Bench, reference: Reference, verify: Verifier, backlog: Backlog,
        take: Callable[[], list[InputSet]],
    ) -> None:
        self._session, self._bench, self._reference = session, bench, reference
        self._verify, self._backlog, self._take = verify, backlog, take
        self._given: list[InputSet] | None = None
        self._ready: _Incomplete | None = None
        self._other: InputSet | None = None
        self._hold = False
        self.opened: EarlyLook | None = None
        self.completed: EarlyLook | None = None
        self.valued: EarlyLook | None = None
        self.recorded: list[Launches] = []

    def prepare(self, inputs: InputSet, count: int) -> None:
        """Have `inputs` ready as the incomplete ones of a segment of `count` launches, and a set of another family; and
        others whenever they were used.
        """
        self._prepare_incomplete(inputs, count)
        self._prepare_other()

    def _prepare_incomplete(self, inputs: InputSet, count: int) -> None:
        if not self._reference.memory.tight:  # there, it is worked out when it is used
            self._ready = self._incomplete(inputs, count)

    def at(self, what: Look, drawn: list[InputSet], usual_us: Sequence[float], *, hold: bool) -> None:
        """Look at `what`, in a segment on the inputs `drawn`, of which what is ready may take the place of one.

        There are two of them at least. `usual_us` are times of calls in the segment before; where there are none it is
        made. Raises Failed where a flush was left out or an output is not right.
        """
        self._given, self._hold = drawn, hold
        limits = self._bench.limits.probe if hold else self._bench.limits.ungated_probe
        if what is Look.FLUSH:
            self._segment(0.0, inspect=True)
            return
        if what is Look.KERNELS:
            self._segment(0.0, record=True)
            return
        usual_us = usual_us or self._segment(0.0)
        # Where the device waits for the host in each call, a window that opens late lets the host run ahead.
        early_s = result.open_s(usual_us) if limits.waits_for_host else 0.0

        def at_one(launches: Callable[[float], tuple[float, Sequence[float]]]) -> EarlyLook:
            return result.look_at_one(lambda: launches(early_s), limits, usual_us, lambda: self._segment(early_s))

        if what is Look.VALUES:
            self.valued = worse(self.valued, at_one(self._of_other_values))
        elif what is Look.LATE or limits.waits_for_host:
            self.completed = worse(self.completed, at_one(self._completed_late))
        else:
            self.opened = worse(self.opened, result.look(self._segment, limits, usual_us))

    def _next(self) -> list[InputSet]:
        given, self._given = self._given, None
        return self._take() if given is None else given

    def _incomplete(self, inputs: InputSet, count: int) -> _Incomplete:
        index = 1 + secrets.randbelow(count - 1)
        return _Incomplete(inputs, index, incomplete(inputs, self._reference.draw(), index))

    def _launch(self, sets: list[InputSet], **how: Any) -> Launches:
        self._bench.synchronize()
        made = self._backlog.settling(
            lambda: self._session.launch(sets, hold=self._hold, meanwhile=self._backlog.work, **how)
        )
        self._backlog.settle()
        return made

    def _segment(self, early_s: float, **how: Any) -> list[float]:
        sets = self._next()
        made = self._launch(sets, early_s=early_s, **how)
        self.recorded += [made] if made.recording is not None else []
        self._backlog.add(lambda: self._verify(sets, made))
        if self._reference.memory.tight:
            self._backlog.settle()
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
            self._backlog.add(self._prepare_other)
        self._verify(sets, made)
        times_us = [launch.time_us for launch in made.launches]
        return times_us[index], times_us[1:index]

    def _completed_late(self, early_s: float) -> tuple[float, Sequence[float]]:
        """The time of the one launch, which is drawn but never the lead-in, and those of the ones before it. What of the
        inputs is there before their window lies open for `early_s`.

        Those after it do not count: a candidate that has begun before knows then which one it was, and could be as slow
        for the rest of the segment. Where no two draws of the inputs differ it is a launch like any other.
        """
        failure = None
        for _ in range(_WRONG_EACH_TIME):
            drawn, ready, self._ready = self._next(), self._ready, None
            used = ready or self._incomplete(self._reference.draw(), len(drawn))
            index = used.index
            sets = [*drawn[:index], used.inputs, *drawn[index + 1 :]]
            made = self._launch(sets, early_s=early_s, incomplete=used.lacking)
            if ready is not None:  # those in whose place they came have been seen by nobody
                self._backlog.add(functools.partial(self._prepare_incomplete, drawn[index], len(drawn)))
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
