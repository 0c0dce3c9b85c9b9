"""Eager in several processes of the harness's own: the mean that speedups over a short eager are over, and how far apart
those are.

Only players that run nothing but eager count. What a candidate's process says of eager may be the candidate's doing.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.referee.timed import Timing
from harness.statistics import OverProcesses, trimmed_mean


class Eagers:
    """How much longer eager took in each of these processes than in the referee, in the same rounds.

    `wanted` is in how many it is to be timed where a process adds to its time what shows; none on a CPU.
    """

    def __init__(self, wanted: int) -> None:
        self._wanted, self._tried = wanted, 0
        self._is_short = False
        self._shifts: list[float] = []

    def add(self, timings: Sequence[Timing]) -> None:
        """Count these, each of another process, as tried, and those in which eager was timed in all rounds.

        None after there are as many as are wanted: rows before and after it would be over two means.
        """
        if self._tried >= self._wanted:
            return
        self._tried += max(1, len(timings))
        for timing in timings:
            if timing.log_ratios and len(timing.inside_log_ratios) == len(timing.log_ratios):
                self._is_short = timing.wants_inside
                self._shifts.append(trimmed_mean(timing.inside_log_ratios) - trimmed_mean(timing.log_ratios))

    @property
    def left(self) -> int:
        """In how many more it is to be timed; none before the control was, nor where a call takes too long to matter."""
        return max(0, self._wanted - self._tried) if self._is_short else 0

    @property
    def over_processes(self) -> OverProcesses | None:
        """Its mean over all of them and the referee; None where it was timed in no other, or is not `wanted`."""
        return OverProcesses.of(self._shifts) if self._wanted and self._is_short and self._shifts else None
