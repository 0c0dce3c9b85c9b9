"""Rounds of A B B A: the candidate in its player and strict eager here, in the same slots in the same minutes.

Each round gives one log-ratio; the looks, the interval and the word that follows are `statistics`'. Every timed
output is verified between segments, after all of a part of a round have run: while the player makes the first queue of
the next part, which is held, or before where that begins with B. Where eager is timed in the player too (I), rounds are
A I B I A, and that queue is A's as often as I's.
"""

from __future__ import annotations

import secrets
import statistics as stdlib_statistics
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from harness.device.bench import Bench, LocalTimes
from harness.device.nvml import is_thermal
from harness.inputs.sets import InputSet
from harness.referee.backlog import Backlog
from harness.referee.drawn_looks import DrawnLooks, Look
from harness.referee.estimating import enough, estimate
from harness.referee.inside import Inside
from harness.referee.looking import Looking, Verifier
from harness.referee.reference import Reference
from harness.referee.room import most_launches
from harness.referee.session import Session
from harness.referee.sizing import MOST_LAUNCHES, fewer_that_fit, launches_wanted
from harness.referee.timed import OVERHEAD_TRIM, Part, Timing
from harness.referee.turns import LATE
from harness.settings import Settings
from harness.statistics import OverProcesses, margin, order_of_round, trimmed_mean, typical_us
from harness.wire.rotation import whole_rotations

_STEADY = 0.01
_LEAD_IN_ONE_OF = 4
_END_TO_END_CALLS = 5
# A baseline that takes longer shows nothing of what a process adds to each launch: what it adds to a short candidate
# beside it is then in no baseline's time, inside or out. Beside a candidate that takes as long it does show (0.02 % of
# 2.7 ms on an H200), and counts where intervals as narrow as the margin are asked for.
_INSIDE_BELOW_US = {"cuda": 1000.0, "cpu": 0.0}
_AS_LONG = 0.1


class Rounds:
    """The timing of one candidate; `verify` judges the outputs of each segment and raises when one is wrong.

    The control is the baseline itself, and what a process adds to both leaves their ratio. Any other's, where the baseline is
    short, is over its mean `over_processes`, if there is one.
    """

    def __init__(
        self, session: Session, bench: Bench, reference: Reference, settings: Settings, verify: Verifier,
        own_pids: set[int], *, is_control: bool = False, over_processes: OverProcesses | None = None,
    ) -> None:
        self._session, self._bench, self._reference = session, bench, reference
        self._settings, self._verify, self._own_pids = settings, verify, own_pids
        self._is_control, self._hold = is_control, bench.kind != "cpu"
        self._counts = {"A": 2, "B": 2}
        self._of_baseline: list[InputSet] = []
        self._drawn: list[InputSet] = []  # for the next segment of the candidate's
        self._backlog = Backlog(bench.synchronize)
        kinds = [what for what in Look if what is not Look.VALUES or reference.timed_families]
        self._looks, self._segments = DrawnLooks(kinds), 0  # so many of the candidate's in rounds
        self._looking = Looking(session, bench, reference, verify, self._backlog, self._take)
        self._usual_us: list[float] = []  # times of the candidate's last segment
        self._usual_held = False
        self._inside = Inside()
        self._stood_still = False  # whether a round was left out because a queue of it was late
        self._is_shortened = False  # whether shorter queues were tried, as the first were late
        self._joined = False  # whether there is room for two segments of the baseline in one
        self.timing = Timing(
            timer=session.timer, is_of_its_process=bench.kind != "cpu" and not is_control, over_processes=over_processes
        )

    def run(self) -> Timing:
        """Warm up, keep rounds until the interval is narrow or the budget spent, and estimate."""
        self._size_segments()
        self._warm_up()
        settings, timing = self._settings, self.timing
        before = self._bench.violations()
        started_s = time.monotonic()
        while True:
            before_it = self._hold, replace(self._inside)
            parts = self._round(len(timing.log_ratios) + timing.dropped)
            if self._is_excused(*before_it) or self._is_to_be_shorter(*before_it):
                continue
            reading = self._bench.telemetry(self._own_pids)  # before the checking, which is another load
            slowed = is_thermal(reading.throttle)
            timing.telemetry.append(reading)
            timing.read_at_s.append(time.monotonic() - started_s)
            timing.read_kept.append(not slowed)
            if slowed:
                timing.dropped += 1
            else:
                timing.keep(*parts)
            if enough(timing, settings, time.monotonic() - started_s):
                break
        timing.violations = self._bench.violations().since(before)
        timing.inside_fault = self._inside.fault
        self._look_last(len(timing.log_ratios) + timing.dropped)
        timing.early, timing.completed = self._looking.opened, self._looking.completed
        timing.valued = self._looking.valued
        estimate(timing, settings)
        self._measure_end_to_end()
        return timing

    def _size_segments(self) -> None:
        """Launches per segment from a first, unheld look at both arms; the first of each is thrown away later."""
        self._open(2)
        sizing = self._part("AB", hold=False)
        most = most_launches(self._bench, self._reference, least=2)
        settings = self._settings
        round_s = settings.budget_s / settings.looks[0]
        for arm, wanted in launches_wanted(sizing, settings.segment_ms, round_s).items():
            self._counts[arm] = 1 + max(1, min(whole_rotations(min(MOST_LAUNCHES, wanted)), most - 1))
        self.timing.wants_inside = self._is_short(sizing)
        shows_inside = self._shows_inside(sizing)
        # Of many launches the lead-in is a small part, and each set of inputs takes memory that a player has to open.
        self._joined = not shows_inside and self._launches_of_baseline(2) <= min(most, 1 + MOST_LAUNCHES)
        self.timing.input_sets = max(self._counts["A"], self._launches_of_baseline(2 if self._joined else 1))
        self.timing.launches_per_segment = self._counts["A"]
        self._open(self.timing.input_sets)
        if shows_inside:
            self._inside.load(self._session, self._reference)

    def _is_short(self, sizing: Part) -> bool:
        """Whether what a process adds to a launch is anything beside the baseline's time."""
        return stdlib_statistics.median(sizing.baseline_us) < _INSIDE_BELOW_US[self._bench.kind]

    def _shows_inside(self, sizing: Part) -> bool:
        """Whether the baseline in the player would tell anything of what the player's process adds to the candidate."""
        if self._is_short(sizing) or not _INSIDE_BELOW_US[self._bench.kind]:
            return self._is_short(sizing)
        candidate_us, baseline_us = map(stdlib_statistics.median, (sizing.candidate_us, sizing.baseline_us))
        return self._settings.half_width <= margin(baseline_us) and abs(candidate_us / baseline_us - 1) < _AS_LONG

    def _launches_of_baseline(self, segments: int) -> int:
        """How many there are in so many segments that are made as one, with its lead-in."""
        return 1 + segments * (self._counts["B"] - 1)

    def _open(self, count: int) -> None:
        self._session.open(self._reference, count)

    def _warm_up(self) -> None:
        """Until two segments of A agree to a per cent, at least three and at most `warmup_s`."""
        self._looking.prepare(self._reference.draw(), self._counts["A"])
        deadline = time.monotonic() + self._settings.warmup_s
        self._part("AI" if self._inside.is_timed else "A", hold=False)  # what each does at first is done, and B has done it
        previous = None
        while True:
            before_it = self._hold, replace(self._inside)
            current = typical_us(self._part("A", hold=self._hold).candidate_us)
            if self._is_to_be_shorter(*before_it):
                continue
            steady = previous is not None and abs(current / previous - 1) < _STEADY
            if steady or time.monotonic() > deadline:
                break
            previous = current
        self.timing.unheld_overhead_us = self._overhead_us(synchronised=False)
        if self._is_control and self._bench.kind != "cpu":
            self.timing.synchronised_overhead_us = self._overhead_us(synchronised=True)

    def _overhead_us(self, *, synchronised: bool) -> float | None:
        """The referee's wall time of a launch that is not held, less the time reported."""
        found = self._part("A", hold=False, synchronised=synchronised).wall_less_time_us
        return trimmed_mean(found, OVERHEAD_TRIM) if found else None

    def _round(self, index: int) -> tuple[Part, Part]:
        """The halves of round `index`, held where that is possible."""
        halves = []
        for order in self._order(index):
            look = self._looks.before(self._segments)
            halves.append(self._part(order, hold=self._hold, look=look))
            self._segments += 1
        return halves[0], halves[1]

    def _is_excused(self, held: bool, inside: Inside) -> bool:
        """Whether a queue of the round just made was late for the first time, after rounds in which none was.

        What synchronises is late in each. A machine that stood still for a moment is nobody's fault: that round is left
        out, and all is as before it. Once: who could choose which of its rounds count would choose the fast ones.
        """
        lost_hold, lost_inside = held and not self._hold, inside.is_timed and not self._inside.is_timed
        if not (lost_hold or lost_inside) or self._stood_still or not self.timing.log_ratios:
            return False
        if lost_inside and self._inside.fault != LATE:
            return False
        self._stood_still = True
        self._hold, self._inside = held, inside
        self._usual_us = []  # they may be of a queue that ran dry
        self.timing.notes.append("a round was left out: a queue of it was not full in time, as all before it had been")
        return True

    def _is_to_be_shorter(self, held: bool, inside: Inside) -> bool:
        """Whether other lengths of queues were tried, as the first was late: before any round, and once. What is late at each
        synchronises, and keeps the usual length.
        """
        is_late = (held and not self._hold) or (inside.is_timed and self._inside.fault == LATE)
        if not is_late or self._is_shortened or self.timing.log_ratios or self.timing.dropped:
            return False
        self._is_shortened = True
        found, usual = (self._hold, replace(self._inside)), self._counts
        fewer = fewer_that_fit(usual, lambda counts: self._holds(counts, inside))
        self._use(fewer or usual)
        # Where none fits, only that is given up which was late.
        self._hold, self._inside = (True, replace(inside)) if fewer else found
        return True

    def _holds(self, counts: Mapping[str, int], inside: Inside) -> bool:
        """Whether a queue of so many launches is held in either process."""
        self._use(counts)
        self._hold, self._inside = True, replace(inside)
        self._part("AIB" if inside.is_timed else "ABB" if self._joined else "AB", hold=True)
        return self._hold and self._inside.fault != LATE

    def _use(self, counts: Mapping[str, int]) -> None:
        """Have so many launches in each segment; there is room for as many as there were."""
        self._backlog.settle()
        self._counts, self._drawn, self._usual_us = dict(counts), [], []
        self._looking.prepare(self._reference.draw(), counts["A"])
        self.timing.launches_per_segment = counts["A"]

    def _order(self, index: int) -> tuple[str, str]:
        return order_of_round(index, beside=self._inside.is_timed, joined=self._joined)

    def _part(self, order: str, *, hold: bool, look: Look | None = None, synchronised: bool = False) -> Part:
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
        made, local, inside_us = None, None, []
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
                if hold:  # Once one arm cannot be held, neither is: a ratio with one launch overhead in it means nothing.
                    self._hold = self._hold and made.hidden is not False
            elif arm == "I":
                inside_us = self._time_inside(own, hold=hold and self._hold)
            else:
                local = self._own_launches(own, hold=hold and self._hold)
        if hold:
            self.timing.launch_hidden = self._hold
        self._backlog.settle()
        self._backlog.add(lambda: self._verify(drawn, made, _to_verify(len(drawn))))
        part = Part(
            made.launches[1:], _cut(local.times_us[1:] if local else [], order.count("B")), made.tail_us,
            local.forward_us[1:] if local else [], inside_us,
        )
        if hold or not self._hold:
            self._usual_us, self._usual_held = part.candidate_us, hold
        return part

    def _look(self, look: Look, drawn: list[InputSet]) -> None:
        # Times of a queue that was held say nothing of one that is not.
        usual_us = self._usual_us if self._usual_held == self._hold else []
        self._looking.at(look, drawn, usual_us, hold=self._hold)

    def _look_last(self, index: int) -> None:
        """Look once more, where the candidate's first segment of the round after the last would be."""
        order = self._order(index)[0]
        if not self._hold or order[0] == "B":
            self._backlog.settle()
        drawn = self._take()
        own = self._inputs_of_baseline(order)
        self._session.draw_places()
        self._bench.synchronize()
        for arm in _segments(order[: order.index("A")]):
            if arm == "I":
                self._time_inside(own, hold=self._hold)
            else:
                self._own_launches(own, hold=self._hold)
        # Of no use any more, but a look begins as late as what it stands for.
        self._draw_ahead_if(order.strip("B")[-1] == "A")
        self._look(self._looks.last(), drawn)
        self._backlog.settle()

    def _own_launches(self, own: Sequence[InputSet], *, hold: bool) -> LocalTimes:
        made = self._bench.local_launches(self._reference.model, own, hold=hold)
        self._hold = self._hold and made.hidden is not False
        return made

    def _time_inside(self, own: Sequence[InputSet], *, hold: bool) -> list[float]:
        return self._inside.times_us(self._session, self._backlog, own, hold=hold)

    def _take(self) -> list[InputSet]:
        """Inputs for one segment of the candidate's."""
        drawn, self._drawn = self._drawn or self._draw(), []
        return drawn

    def _draw(self) -> list[InputSet]:
        return [self._reference.draw() for _ in range(self._counts["A"])]

    def _draw_ahead_if(self, is_time: bool) -> None:
        """Have the candidate's next inputs drawn while the player makes its queue, if it is held: nobody but the referee
        sees them until then.
        """
        if is_time and self._hold:
            self._backlog.add(self._draw_ahead)

    def _draw_ahead(self) -> None:
        self._drawn = self._draw()

    def _inputs_of_baseline(self, order: str) -> list[InputSet]:
        count = self._launches_of_baseline(2 if "BB" in order else 1)
        while len(self._of_baseline) < count:
            self._of_baseline.append(self._reference.draw())
        return self._of_baseline[:count]

    def _measure_end_to_end(self) -> None:
        """Single calls with nothing queued ahead, so that the launch overhead shows."""
        host_us = []
        for _ in range(_END_TO_END_CALLS):
            sets = [self._reference.draw()]
            self._bench.synchronize()
            made = self._session.launch(sets, hold=False)
            self._verify(sets, made)
            host_us.append(made.end_to_end_us)
        self.timing.end_to_end_us = stdlib_statistics.median(host_us)


def _cut(times_us: list[float], segments: int) -> list[list[float]]:
    """The times of so many segments of equal length that were made as one: each is to count as any other does."""
    length = len(times_us) // max(segments, 1)
    return [times_us[index * length : (index + 1) * length] for index in range(segments)]


def _segments(order: str) -> Iterable[str]:
    """The arms of `order` by segments: B once where two of it are one."""
    return order.replace("BB", "B")


def _to_verify(count: int) -> Collection[int] | None:
    """Of the `count` launches of a segment those whose outputs are verified: all that are timed, and of the lead-ins,
    whose times nobody sees, one in four by chance.
    """
    return None if secrets.randbelow(_LEAD_IN_ONE_OF) == 0 else range(1, count)
