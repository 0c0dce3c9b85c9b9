"""How far the same measurement, made again and again, lands from the truth and from itself. Pure floats.

What is measured again is a ratio whose truth is known: a kernel against itself is 1, against k times itself k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.timing.stats.trimmed_mean import Interval


@dataclass(frozen=True)
class Scatter:
    """`n` ratios over their truth: relative distances from 1 (0.01 = 1 %).

    `worst` is the largest distance of all, `p95` the 95th percentile, `spread` largest over smallest less 1.
    """

    n: int
    worst: float
    p95: float
    spread: float

    @staticmethod
    def of(ratios: Sequence[float], truth: float = 1.0) -> Scatter:
        """Raises ValueError without ratios or for one that is not positive."""
        if not ratios or min(ratios) <= 0 or truth <= 0:
            raise ValueError("a scatter needs ratios, and a ratio is positive")
        off = sorted(abs(ratio / truth - 1) for ratio in ratios)
        return Scatter(len(off), off[-1], percentile(off, 0.95), max(ratios) / min(ratios) - 1)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least `share` of them do not exceed (nearest rank). Raises ValueError."""
    if not values or not 0 < share <= 1:
        raise ValueError("a percentile needs values, and a share above 0 up to 1")
    ordered = sorted(values)
    return ordered[math.ceil(share * len(ordered) - 1e-9) - 1]


def held(intervals: Sequence[Interval], truth: float = 1.0) -> int:
    """How many of the intervals hold the truth."""
    return sum(each.lo <= truth <= each.hi for each in intervals)


def seen_at_most(events: int, n: int, confidence: float = 0.95) -> float:
    """The largest rate of an event that is compatible with `events` of `n` (one-sided Clopper and Pearson 1934).

    1 where there were none to look at.
    """
    from scipy.special import betaincinv

    return 1.0 if events >= n else float(betaincinv(events + 1, n - events, confidence))


def long_run(ratios: Sequence[float]) -> float:
    """Where the same measurement made often enough ends up: the geometric mean. Raises ValueError as `Scatter.of`."""
    if not ratios or min(ratios) <= 0:
        raise ValueError("a long-run ratio needs ratios, and a ratio is positive")
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def spreads(by_process: Sequence[Sequence[float]]) -> list[float]:
    """Largest over smallest less 1 of the first ratio of each process, of the second of each, and so on.

    Only places that every process came to are compared; there are none with fewer than two processes.
    """
    whole = list(zip(*by_process)) if len(by_process) > 1 else []
    return [max(ratios) / min(ratios) - 1 for ratios in whole]
