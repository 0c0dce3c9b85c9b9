"""Parts of a round: segments of the candidate in its player and of strict eager here, in the same slots, on inputs that
are drawn while a player is busy.

Which parts there are, and what they amount to, is `rounds`'s.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.device.bench import Bench, LocalTimes
from harness.launch.session import Session
from harness.reference.inputs.sets import InputSet
from harness.reference.reference_model import Reference
from harness.timing.deferred_work import Backlog
from harness.timing.in_worker_baseline import Inside
from harness.timing.probes.runner import Looking, Verifier
from harness.timing.probes.schedule import Look
from harness.timing.timings import Part

_LEAD_IN_ONE_OF = 4


class Parts:
    """Makes them for one candidate; `verify` judges the outputs of each segment and raises when one is wrong.

    `hold` says whether queues are held: once one of them was late none is. `counts` are the launches of a segment of either
    arm, `lead_ins` with them, `inside` the baseline in the player, and `looking` looks at the candidate. `waits` says whether
    it was the candidate's own queue that was late.
    """

    def __init__(self, session: Session, bench: Bench, reference: Reference, verify: Verifier) -> None:
        self._session, self._bench, self._reference, self._verify = session, bench, reference, verify
        self.hold, self.inside = bench.limits.gates_queues, Inside()
        self.waits = False
        self.counts = {"A": 2, "B": 2}
        self.lead_ins = 1  # of the candidate's segments; the baseline's always have one
        self._of_baseline: list[InputSet] = []
        self._drawn: list[InputSet] = []  # for the next segment of the candidate's
        self._backlog = Backlog(bench.synchronize)
        self.looking = Looking(session, bench, reference, verify, self._backlog, self._take)
        self._usual_us: list[float] = []  # times of the candidate's last segment
        self._usual_held = False

    @property
    def state(self) -> tuple[bool, Inside]:
        """Whether queues are held, and what became of the baseline inside, as they are now; `hold` and `inside` take it."""
        return self.hold, replace(self.inside)

    def restore(self, hold: bool, inside: Inside) -> None:
        """Have both as they were in an earlier `state`, of which no time is held against what comes."""
        self.hold, self.inside = hold, inside
        self._usual_us = []  # they may be of a queue that ran dry

    def use(self, counts: Mapping[str, int]) -> None:
        """Have so many launches in each segment; there is room for as many as there were."""
        self._backlog.settle()
        self.counts, self._drawn, self._usual_us = dict(counts), [], []
        self.prepare()

    def settle(self) -> None:
        """Verify what is still to be verified. Raises Failed for what was found wrong."""
        self._backlog.settle()

    def prepare(self) -> None:
        """Have what looks take besides ready, for segments of that length."""
        self.looking.prepare(self._reference.draw(), self.counts["A"])

    def launches_of_baseline(self, segments: int) -> int:
        """How many there are in so many segments that are made as one, with its lead-in."""
        return 1 + segments * (self.counts["B"] - 1)

    def make(self, order: str, *, hold: bool, look: Look | None = None, synchronised: bool = False) -> Part:
        """Segments of the arms in `order`, with one of A among them, in the same slots, without their lead-ins; BB is one.

        The candidate's inputs are drawn anew. Eager has its own, drawn once: they lie in slots that the player can
        read, and are nobody's secret. The outputs are verified later, before the next are taken. Before A comes what is
        looked at, if anything.
        """
        if not hold or order[0] == "B":  # no queue of the player's before the referee's own
            self._backlog.settle()
        drawn = self._take()
        own = self._inputs_of_baseline(order)
        self._session.draw_places()  # the same for what is compared, and for what is looked at, which tells it from nothing
        self._bench.synchronize()
        made, local, inside_us, is_tight = None, None, [], self._reference.memory.tight
        for arm in _segments(order):
            is_last = arm == order.strip("B")[-1]
            if arm == "A" and look is not None:
                self._draw_ahead_if(is_last and hold)
                self._look(look, drawn)
                drawn = self._take()
            self._draw_ahead_if(is_last and hold)
            if arm == "A":
                made = self._backlog.settling(
                    lambda: self._session.launch(
                        drawn, hold=hold, meanwhile=self._backlog.work, synchronised=synchronised
                    )
                )
                if is_tight:
                    self._backlog.add(functools.partial(self._verify, drawn, made, self._to_verify(len(drawn))))
                    self._backlog.settle()  # before the baseline takes the memory
                if hold:  # Once one arm cannot be held, neither is: a ratio with one launch overhead in it means nothing.
                    self.waits = made.hidden is False
                    self.hold = self.hold and not self.waits
            elif arm == "I":
                inside_us = self._time_inside(own, hold=hold and self.hold)
            else:
                local = self._own_launches(own, hold=hold and self.hold)
        self._backlog.settle()
        if not is_tight:
            self._backlog.add(lambda: self._verify(drawn, made, self._to_verify(len(drawn))))
        part = Part(
            made.launches[self.lead_ins :], _cut(local.times_us[1:] if local else [], order.count("B")), made.tail_us,
            local.forward_us[1:] if local else [], inside_us,
        )
        if hold or not self.hold:
            self._usual_us, self._usual_held = part.candidate_us, hold
        return part

    def _look(self, look: Look, drawn: list[InputSet]) -> None:
        # Times of a queue that was held say nothing of one that is not.
        usual_us = self._usual_us if self._usual_held == self.hold else []
        self.looking.at(look, drawn, usual_us, hold=self.hold)

    def look_last(self, order: str, look: Look) -> None:
        """Look once more, where the candidate's first segment of a part in that `order` would be."""
        if not self.hold or order[0] == "B":
            self._backlog.settle()
        drawn = self._take()
        own = self._inputs_of_baseline(order)
        self._session.draw_places()
        self._bench.synchronize()
        for arm in _segments(order[: order.index("A")]):
            if arm == "I":
                self._time_inside(own, hold=self.hold)
            else:
                self._own_launches(own, hold=self.hold)
        # Of no use any more, but a look begins as late as what it stands for.
        self._draw_ahead_if(order.strip("B")[-1] == "A")
        self._look(look, drawn)
        self._backlog.settle()

    def _own_launches(self, own: Sequence[InputSet], *, hold: bool) -> LocalTimes:
        if self._reference.memory.on_host:
            self._session.reopen()
        made = self._bench.local_launches(self._reference.model, own, hold=hold)
        self.hold = self.hold and made.hidden is not False
        if self._reference.memory.on_host:
            self._bench.release_memory()
        return made

    def _time_inside(self, own: Sequence[InputSet], *, hold: bool) -> list[float]:
        return self.inside.times_us(self._session, self._backlog, own, hold=hold)

    def _to_verify(self, count: int) -> Collection[int] | None:
        """Of the `count` launches of a segment those whose outputs are verified: all that are timed, and of the lead-ins,
        whose times nobody sees, one in four by chance.
        """
        return None if secrets.randbelow(_LEAD_IN_ONE_OF) == 0 else range(self.lead_ins, count)

    def _take(self) -> list[InputSet]:
        """Inputs for one segment of the candidate's."""
        drawn, self._drawn = self._drawn or self._draw(), []
        return drawn

    def _draw(self) -> list[InputSet]:
        return [self._reference.draw() for _ in range(self.counts["A"])]

    def _draw_ahead_if(self, is_time: bool) -> None:
        """Have the candidate's next inputs drawn while the player makes its queue, if it is held: nobody but the referee
        sees them until then.
        """
        if is_time and self.hold:
            self._backlog.add(self._draw_ahead)

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
