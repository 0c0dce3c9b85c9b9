"""Eager in workers of its own: what it left as the control, timed again when that is old or in doubt, and in several
processes for the mean that speedups over a short call are over.

What is held against the control is `timing.control`'s; when it is wanted again, the device run and the entry's judge say.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace

from harness.device.backend import Backend
from harness.judge.build_pool import BuildPool
from harness.judge.judgement import Judgement, Prepared, Start
from harness.judge.loader import Loader
from harness.judge.stages import JudgingContext
from harness.judge.worker_prestart import WorkerPrestart
from harness.launch.failures import Failed
from harness.model.baselines import BASELINES
from harness.model.settings import Settings
from harness.model.verdict import OK
from harness.report.progress import Progress
from harness.timing.control import Control
from harness.timing.rounds import Rounds
from harness.timing.stats import UNCOUNTED, PooledBaseline, is_pooled, trimmed_mean
from harness.timing.timings import Timing

# A control must be of the minutes that it is held against; a run of a few candidates takes about as long.
KEEPS_S = 60.0
_BUDGET_S = 1.0


class ControlKeeper:
    """`control` is what eager left, None before it was judged, and `row_s` how long its own row took. `pool` has the times
    of eager in that process and others. Workers come from `build_pool`, of the parameters that `context` has.
    """

    def __init__(
        self, build_pool: BuildPool, prestart: WorkerPrestart, progress: Progress, backend: Backend, settings: Settings
    ) -> None:
        self.build_pool, self._prestart, self._progress = build_pool, prestart, progress
        self.context: JudgingContext  # given once there are references, and anew with other parameters
        self.control: Control | None = None
        self.pool = BaselinePool(settings.eager_players if backend.limits.process_adds else 0)
        self.row_s = 0.0
        self._is_noisy, self._timed_at = False, 0.0

    @property
    def now(self) -> Control | None:
        """What eager has left so far, its mean over processes with it."""
        over = self.pool.pooled_baseline
        return self.control if self.control is None or over is None else replace(self.control, pooled_baseline=over)

    @property
    def is_old(self) -> bool:
        return time.monotonic() - self._timed_at > KEEPS_S

    @property
    def could_be_quieter(self) -> bool:
        """Whether the control was timed beside compilers, and they have ended."""
        return self._is_noisy and self.build_pool.is_quiet

    def allows_more_than(self, former: Control | None) -> bool:
        """Whether beside this control more passes than beside the `former`: it may be this one that was disturbed."""
        return None in (self.control, former) or self.control.allows_more_than(former, self.context.backend.limits)

    def learn_from(self, prepared: Prepared, judgement: Judgement) -> None:
        """Take what a row of the control or of another baseline left."""
        timing = judgement.timing
        if prepared.is_control and timing is not None and timing.candidate_us:
            self.control = Control.of(timing)
            self.pool.add(judgement.timings)
            self.pool.kernels = judgement.launched or self.pool.kernels
            self._is_noisy, self._timed_at = not self.build_pool.is_quiet, time.monotonic()
        elif prepared.is_baseline and self.control is not None and judgement.verdict == OK:
            self.control = self.control.and_baseline(timing)

    def time_elsewhere(self) -> None:
        """Time eager in as many processes as are wanted, before anything is held against it: all rows are over one mean."""
        while self.pool.left:
            self._progress.status("eager", f"timing it in other processes too, {self.pool.left} to come")
            timing = self._timed_again()
            self.pool.add([] if timing is None else [timing])  # a failure counts as one of those that are wanted

    def renew_when_quiet(self) -> None:
        """Time the control again for a clock in doubt, when nothing compiles: that once added 390 µs to the steps.

        Builds that have begun are waited for, and no other begins until the `build_pool` is told to go on: of thousands
        of candidates some are being built nearly to the end.
        """
        if not self.build_pool.is_quiet:
            self._progress.note("a clock is in doubt: waiting until nothing is compiled beside it")
        self.build_pool.pause()
        self.renew()

    def renew(self) -> None:
        """Time the control again: there was none, compilers ran, a clock is doubted. A failure leaves what was."""
        self._is_noisy, self._timed_at = False, time.monotonic()
        timing = self._timed_again()
        if timing is not None:
            self.control = Control.of(timing) if self.control is None else self.control.renewed(timing)

    def _timed_again(self) -> Timing | None:
        prepared, starter = self.build_pool.prepared(BASELINES["eager"])
        self._prestart.wait_until_open()
        try:
            return self._timed_briefly(prepared, starter.start)
        finally:
            starter.close()

    def _timed_briefly(self, prepared: Prepared, start: Start) -> Timing | None:
        """Eager in a worker once more, timed briefly, its outputs unseen; None where that failed."""
        context = self.context
        reference = context.references[0]
        session = context.session(start)
        try:
            Loader(session, prepared, context.model_seed)(reference)
            brief = replace(context.settings, budget_s=min(context.settings.budget_s, _BUDGET_S))
            timing = Rounds(
                session, context.backend, reference, brief, lambda sets, made, only=None: None, set(),
                is_control=True, is_probed=False,
            ).run()
            return timing if timing.candidate_us else None
        except (Failed, RuntimeError):  # no room on the device is a RuntimeError
            context.backend.release_memory()
            return None
        finally:
            session.stop()


class BaselinePool:
    """How much longer eager took in each of these processes than in the judge, in the same rounds: the mean that speedups over
    a short eager are over, how far apart those are, and how many kernels it launches.

    Only workers that run nothing but eager count. What a candidate's process says of eager may be the candidate's doing.
    `wanted` is in how many it is to be timed where it is so short that its mean says more; none on a CPU. `kernels` is how
    many a call launches.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted, self._tried = wanted, 0
        self._is_short: bool | None = None  # once for all rows, by what it took first
        self._shifts: list[float] = []
        self._usual_us: list[float] = []  # in the judge
        self.kernels = UNCOUNTED

    def add(self, timings: Sequence[Timing]) -> None:
        """Count these as tried, and those with eager in all rounds; none beyond the wanted: rows are over one mean."""
        if self._tried >= self._wanted:
            return
        self._tried += max(1, len(timings))
        for timing in timings:
            if self._is_short is None and timing.baseline_us:
                self._is_short = is_pooled(timing.baseline_time_us)
            if timing.log_ratios and len(timing.in_worker_log_ratios) == len(timing.log_ratios):
                self._usual_us.append(timing.baseline_time_us)
                self._shifts.append(trimmed_mean(timing.in_worker_log_ratios) - trimmed_mean(timing.log_ratios))

    @property
    def left(self) -> int:
        """In how many more it is to be timed; none before the control was, nor where a call takes too long to matter."""
        return max(0, self._wanted - self._tried) if self._is_short else 0

    @property
    def pooled_baseline(self) -> PooledBaseline | None:
        """Its mean over all of them and the judge; None where it was timed in no other, is not `wanted`, or not short."""
        if not (self._wanted and self._is_short and self._shifts):
            return None
        return PooledBaseline.of(self._shifts, statistics.median(self._usual_us))
