"""What two measured ratios, or many, come to: a change with its interval, a geometric mean with its own, and how far those of
one measurement lie from the truth and from each other.

What has an interval is done on logarithms, so that twice as fast and half as fast are equally far from no change. Pure floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.timing.stats.trimmed_mean import Interval


def change(before: Interval, now: Interval) -> Interval:
    """`now` over `before`, both positive ratios measured independently, with the interval of the quotient.

    The distances from each estimate to the end that matters are squared, added and rooted, in log space: "square and
    add" (Newcombe 1998, Statistics in Medicine 17, 873–890), shown to hold for intervals of any make by Zou and Donner
    (2008, Statistics in Medicine 27, 1693–1702). For two symmetric intervals these are the half-widths in quadrature.
    Its confidence is that of the two. Raises ValueError for a ratio that is not positive.
    """
    (a, a_lo, a_hi), (b, b_lo, b_hi) = _logs(before), _logs(now)
    estimate, below, above = b - a, math.hypot(b - b_lo, a_hi - a), math.hypot(b_hi - b, a - a_lo)
    return Interval(math.exp(estimate), math.exp(estimate - below), math.exp(estimate + above))


def geometric_mean(ratios: Sequence[Interval]) -> Interval:
    """The geometric mean of independent ratios with its interval, by the same rule as `change`.

    The interval is of the measuring: how far the mean of these very ratios may be off, not what other ratios would
    have given. Raises ValueError without ratios or for one that is not positive.
    """
    if not ratios:
        raise ValueError("no ratios to take a mean of")
    logs = [_logs(each) for each in ratios]
    n = len(logs)
    mean = math.fsum(estimate for estimate, _, _ in logs) / n
    below = math.hypot(*(estimate - lo for estimate, lo, _ in logs)) / n
    above = math.hypot(*(hi - estimate for estimate, _, hi in logs)) / n
    return Interval(math.exp(mean), math.exp(mean - below), math.exp(mean + above))


def _logs(ratio: Interval) -> tuple[float, float, float]:
    if not 0 < ratio.lo <= ratio.hi or ratio.estimate <= 0:
        raise ValueError(f"a ratio cannot be {ratio.estimate} [{ratio.lo}, {ratio.hi}]")
    return math.log(ratio.estimate), math.log(ratio.lo), math.log(ratio.hi)


# How far the same measurement, made again and again, lands from the truth and from itself. What is measured again is a ratio
# whose truth is known: a kernel against itself is 1, against k times itself k.


@dataclass(frozen=True)
class Scatter:
    """`n` ratios over their truth, as distances from 1: the `worst`, 95th percentile, largest over smallest less 1."""

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
    """The largest rate compatible with `events` of `n` (one-sided Clopper and Pearson 1934); 1 where `n` is 0."""
    from scipy.special import betaincinv

    return 1.0 if events >= n else float(betaincinv(events + 1, n - events, confidence))
