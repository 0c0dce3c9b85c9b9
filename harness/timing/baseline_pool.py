"""Eager in several processes of the harness's own: the mean that speedups over a short eager are over, how far apart those
are, and how many kernels it launches.

Only workers that run nothing but eager count. What a candidate's process says of eager may be the candidate's doing.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from harness.timing.stats import UNCOUNTED, PooledBaseline, is_pooled, trimmed_mean
from harness.timing.timings import Timing


class BaselinePool:
    """How much longer eager took in each of these processes than in the judge, in the same rounds.

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
        """Count these, each of another process, as tried, and those in which eager was timed in all rounds.

        None after there are as many as are wanted: rows before and after it would be over two means.
        """
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
