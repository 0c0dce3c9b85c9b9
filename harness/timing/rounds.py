"""Rounds of A B B A: the candidate in its worker and strict eager here, in the same slots in the same minutes.

A segment is several launches of one arm in a row: A is the candidate, B strict eager. A round is A B B A, made in parts
(`segments`), and gives one log-ratio. `timing.stats` makes interim checks, an interval and a word of the ratios. The
judge verifies every timed output once its part has run. It does so while the worker prepares the first launches of
the next part, or before that where the next part begins with B. Where the worker times eager too (I), a round is
A I B I A, and the judge verifies beside A and I equally often.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace

from harness.device.backend import Backend
from harness.device.nvml import is_thermal
from harness.launch.conversation import LATE
from harness.launch.session import Session
from harness.model.settings import Settings
from harness.reference.reference_model import Reference
from harness.timing import stopping_rule
from harness.timing.estimate import estimate, estimate_briefly
from harness.timing.in_worker_baseline import InWorkerBaseline, is_short, shows_in_worker_baseline
from harness.timing.probes.runner import Verifier
from harness.timing.probes.schedule import Probe, ProbeSchedule
from harness.timing.segment_length import (
    MOST_LAUNCHES, SLOWER, fewer_that_fit, is_far_slower, launches_wanted, takes_times, with_lead_ins,
)
from harness.timing.segments import SegmentRunner
from harness.timing.stats import PooledBaseline, order_of_round, trimmed_mean, typical_us
from harness.timing.timings import OVERHEAD_TRIM, HalfRound, Timing

_STEADY = 0.01
_END_TO_END_CALLS = ((20_000.0, 1), (2000.0, 3), (0.0, 5))  # by µs of a call: of a long one the host's time is a small part
_FAR_MORE = 2  # times as many launches: fewer are not worth opening memory anew
_BRIEF_ROUNDS = 3


class Rounds:
    """The timing of one candidate; `verify` judges the outputs of each segment and raises when one is wrong.

    The control is the baseline itself, and what a process adds to both leaves their ratio. Any other's, where the baseline is
    short, is over its mean `pooled_baseline`, if there is one; nobody's is called by less than `control_apart`. Without
    `is_probed`, which is for what the harness or PyTorch brings, there are no probes. From `ends_s` on, by
    time.monotonic(), the row's budget is spent.
    """

    def __init__(
        self, session: Session, backend: Backend, reference: Reference, settings: Settings, verify: Verifier,
        own_pids: set[int], *, is_control: bool = False, is_probed: bool = True, pooled_baseline: PooledBaseline | None = None,
        control_apart: float = 0.0, ends_s: float = math.inf,
    ) -> None:
        self._session, self._backend, self._reference = session, backend, reference
        self._settings, self._verify, self._own_pids = settings, verify, own_pids
        self._is_control, self._ends_s = is_control, ends_s
        self._runner = SegmentRunner(session, backend, reference, verify, is_probed=is_probed)
        self._probe_schedule = ProbeSchedule(self._runner.probe_runner.possible)
        self._segments = 0  # so many of the candidate's in rounds
        self._stood_still = False  # whether a round was left out because a queue of it was late
        self._is_shortened = False  # whether shorter queues were tried, as the first were late
        self._sizing: HalfRound | None = None  # the first times of both arms, until a queue was gated
        self._joined = False  # whether there is room for two segments of the baseline in one
        self.timing = Timing(
            timer=session.timer, is_of_its_process=backend.limits.process_adds and not is_control, pooled_baseline=pooled_baseline,
            control_apart=control_apart,
        )

    def run(self) -> Timing:
        """Warm up, keep rounds until the interval is narrow or the budget spent, and estimate."""
        self._size_segments()
        if self.timing.is_brief and self._time_briefly():
            return self.timing
        self._warm_up()
        settings, timing = self._settings, self.timing
        before = self._backend.violations()
        started_s = time.monotonic()
        while True:
            before_it = self._runner.state
            halves = self._round(len(timing.log_ratios) + timing.dropped)
            if self._excuse_once(*before_it) or self._shorten_if_late(*before_it):
                continue
            if before_it[0] and not self._runner.gate:
                timing.forget_rounds()  # of launches that were queued ahead: of times of both kinds half could be a lie
                continue
            reading = self._backend.telemetry(self._own_pids)  # before the checking, which is another load
            if self._backend.limits.lists_kernels:
                self._session.note_helpers()
            slowed = is_thermal(reading.throttle)
            timing.note_reading(reading, time.monotonic() - started_s, kept=not slowed)
            if slowed:
                timing.dropped += 1
            else:
                timing.keep(*halves)
            is_late = time.monotonic() > self._ends_s
            is_reached = stopping_rule.is_reached(timing, settings, time.monotonic() - started_s, is_late=is_late)
            if is_reached and not stopping_rule.is_in_doubt(timing, settings, self._backend.limits, is_late=is_late):
                break
        timing.violations = self._backend.violations().since(before)
        timing.in_worker_fault = self._runner.in_worker.fault
        if (last := self._probe_schedule.last()) is not None:
            self._runner.probe_last(self._order(len(timing.log_ratios) + timing.dropped)[0], last)
        self._runner.settle()
        timing.probe_results, timing.recorded = dict(self._runner.probe_runner.results), self._runner.probe_runner.recorded
        estimate(timing, settings)
        self._measure_end_to_end()
        return timing

    def _time_briefly(self) -> bool:
        """Time a few calls of a candidate that takes far longer than the baseline, each beside a segment of that.

        Return False for one that no longer does: at first it was one call, which it could make slow, and has all rounds.
        """
        timing = self.timing
        self._runner.lead_ins, self._runner.counts["A"] = 0, 1
        timing.launches_per_segment = 1
        started_s = time.monotonic()
        while len(timing.log_ratios) < _BRIEF_ROUNDS:
            was_gated = self._runner.gate
            half = self._half("BA" if len(timing.log_ratios) % 2 else "AB", gate=was_gated)
            if was_gated and not self._runner.gate:
                timing.forget_rounds()  # at most once: from now on no queue is gated
                continue
            if not takes_times(half, SLOWER):
                self._runner.settle()
                timing.forget_rounds()
                timing.is_brief, self._runner.lead_ins = False, 1
                self._size_by(half)
                return False
            timing.note_reading(self._backend.telemetry(self._own_pids), time.monotonic() - started_s, kept=True)
            timing.keep(half)
        self._runner.settle()
        estimate_briefly(timing, self._settings.confidence)
        times = timing.time_us / timing.baseline_time_us
        timing.notes.append(f"it takes about {times:,.0f} times as long as eager, so {_BRIEF_ROUNDS} calls were timed")
        self._measure_end_to_end(calls=1)
        return True

    def _size_segments(self) -> None:
        """Launches per segment from a first, ungated segment of either arm; the first launch of each is thrown away later."""
        self._session.open(self._reference, 2)
        if self._session.takes_long:
            self._runner.lead_ins, self._runner.counts["A"] = 0, 1
        sizing = self._half("AB", gate=False)
        self._runner.lead_ins = 1
        self.timing.is_brief = not self._is_control and is_far_slower(sizing, self._settings.budget_s, self._ends_s)
        self._size_by(sizing)

    def _size_by(self, sizing: HalfRound) -> None:
        """Have segments of as many launches as the times in `sizing` ask for."""
        self._sizing = sizing
        self._runner.counts = self._counts_for(sizing)
        limits, is_brief = self._backend.limits, self.timing.is_brief
        self.timing.wants_in_worker = is_short(sizing, limits) and not is_brief
        shows_in_worker = shows_in_worker_baseline(sizing, limits, self._settings.half_width) and not is_brief
        # Of many launches the lead-in is a small part, and each set of inputs takes memory that a worker has to open.
        most = min(self._reference.memory.launches, 1 + MOST_LAUNCHES)
        self._joined = not shows_in_worker and self._runner.launches_of_baseline(2) <= most
        self._open_for(self._runner.counts)
        if shows_in_worker:
            self._runner.in_worker.load(self._session, self._reference)

    def _counts_for(self, seen: HalfRound) -> dict[str, int]:
        """The launches of either arm that a segment should have, lead-ins with them, by the times in `seen`."""
        settings = self._settings
        round_s, most = settings.budget_s / settings.interim_checks[0], self._reference.memory.launches
        wanted = launches_wanted(seen, settings.segment_ms, round_s)
        self.timing.lacked_launches = min(MOST_LAUNCHES, wanted["A"]) > most - 1
        return with_lead_ins(wanted, most)

    def _open_for(self, counts: Mapping[str, int]) -> None:
        """Have room for segments of so many launches."""
        self.timing.input_sets = max(counts["A"], self._runner.launches_of_baseline(2 if self._joined else 1))
        self.timing.launches_per_segment = counts["A"]
        self._session.open(self._reference, self.timing.input_sets)

    def _warm_up(self) -> None:
        """Until two segments of A agree to a per cent, at least three and at most `warmup_s`."""
        self._runner.prepare()
        deadline = time.monotonic() + self._settings.warmup_s
        # What each does at first is done with, and B has done it.
        self._half("AI" if self._runner.in_worker.is_timed else "A", gate=False)
        previous = None
        while True:
            before_it = self._runner.state
            half = self._half("A", gate=self._runner.gate)
            if self._shorten_if_late(*before_it) or self._lengthen_if_short(half):
                continue
            current = typical_us(half.candidate_us)
            steady = previous is not None and abs(current / previous - 1) < _STEADY
            if steady or time.monotonic() > deadline:
                break
            previous = current
        self.timing.ungated_overhead_us = self._overhead_us(synchronised=False)
        if self._is_control and self._backend.limits.gates_queues:
            self.timing.synchronised_overhead_us = self._overhead_us(synchronised=True)

    def _overhead_us(self, *, synchronised: bool) -> float | None:
        """The judge's wall time of a launch that is not gated, less the time reported."""
        overheads_us = self._half("A", gate=False, synchronised=synchronised).wall_less_time_us
        return trimmed_mean(overheads_us, OVERHEAD_TRIM) if overheads_us else None

    def _round(self, index: int) -> tuple[HalfRound, HalfRound]:
        """The halves of round `index`, held where that is possible."""
        halves = []
        for order in self._order(index):
            probe = self._probe_schedule.before(self._segments)
            halves.append(self._half(order, gate=self._runner.gate, probe=probe))
            self._segments += 1
        return halves[0], halves[1]

    def _excuse_once(self, gated: bool, in_worker: InWorkerBaseline) -> bool:
        """Whether a queue of the round just made was late for the first time, after rounds in which none was.

        What synchronises is late in each. A machine that stood still for a moment is nobody's fault: that round is left
        out, and all is as before it. Once: who could choose which of its rounds count would choose the fast ones.
        """
        lost_gate, lost_in_worker = gated and not self._runner.gate, in_worker.is_timed and not self._runner.in_worker.is_timed
        if not (lost_gate or lost_in_worker) or self._stood_still or not self.timing.log_ratios:
            return False
        if lost_in_worker and self._runner.in_worker.fault != LATE:
            return False
        self._stood_still = True
        self._runner.restore(gated, in_worker)
        self.timing.notes.append("a round was left out: a queue of it was not full in time, as all before it had been")
        return True

    def _shorten_if_late(self, gated: bool, in_worker: InWorkerBaseline) -> bool:
        """Whether shorter queues were tried, once and before any round, as the first was late."""
        is_late = (gated and not self._runner.gate) or (in_worker.is_timed and self._runner.in_worker.fault == LATE)
        if not is_late or self._is_shortened or self.timing.log_ratios or self.timing.dropped:
            return False
        self._is_shortened = True
        state, usual = self._runner.state, self._runner.counts
        fewer = fewer_that_fit(usual, lambda counts: self._holds(counts, in_worker))
        if fewer is None and self._joined and not self._runner.waits:  # the baseline's queue of both its segments is the longest
            self._joined = False
            fewer = fewer_that_fit(usual, lambda counts: self._holds(counts, in_worker), is_shorter=True)
            self._joined = fewer is None
        self._use(fewer or usual)
        # Where none fits, only that is given up which was late.
        self._runner.restore(*((True, replace(in_worker)) if fewer else state))
        return True

    def _lengthen_if_short(self, gated: HalfRound) -> bool:
        """Whether segments of the candidate have more launches from now on: queued ahead, its call takes less than half of
        what it did where the host's time was in it. Asked of the first queue that is gated.
        """
        if not self._runner.gate or self._is_shortened or self._sizing is None:
            return False
        sizing, self._sizing = self._sizing, None
        counts = self._runner.counts
        wanted = self._counts_for(replace(sizing, launches=gated.launches))["A"]
        if wanted - 1 < _FAR_MORE * (counts["A"] - 1):
            return False
        self._runner.settle()  # what is still to be verified lies where others are about to
        counts = {**counts, "A": wanted}
        self._open_for(counts)
        self._use(counts)
        return True

    def _holds(self, counts: Mapping[str, int], in_worker: InWorkerBaseline) -> bool:
        """Whether a queue of so many launches is held in either process."""
        self._use(counts)
        self._runner.restore(True, replace(in_worker))
        self._half("AIB" if in_worker.is_timed else "ABB" if self._joined else "AB", gate=True)
        return self._runner.gate and self._runner.in_worker.fault != LATE

    def _use(self, counts: Mapping[str, int]) -> None:
        self._runner.use(counts)
        self.timing.launches_per_segment = counts["A"]

    def _half(self, order: str, *, gate: bool, probe: Probe | None = None, synchronised: bool = False) -> HalfRound:
        half = self._runner.make(order, gate=gate, probe=probe, synchronised=synchronised)
        if gate:
            self.timing.launch_hidden, self.timing.waits = self._runner.gate, self._runner.waits
        return half

    def _order(self, index: int) -> tuple[str, str]:
        return order_of_round(index, beside=self._runner.in_worker.is_timed, joined=self._joined)

    def _measure_end_to_end(self, calls: int | None = None) -> None:
        """Single calls with nothing queued ahead, so that the launch overhead shows."""
        host_us, call_us = [], self.timing.time_us if self.timing.candidate_us else 0.0
        for _ in range(calls or next(calls for least_us, calls in _END_TO_END_CALLS if call_us >= least_us)):
            sets = [self._reference.draw()]
            self._backend.synchronize()
            made = self._session.launch(sets, gate=False)
            self._verify(sets, made)
            host_us.append(made.end_to_end_us)
        self.timing.end_to_end_us = statistics.median(host_us)
