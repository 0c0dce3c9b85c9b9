"""What two measured ratios, or many, come to: a change with its interval, and a geometric mean with its own.

Everything is done on logarithms, so that twice as fast and half as fast are equally far from no change. Pure floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.timing.stats.trimmed_mean import Interval


def change(before: Interval, now: Interval) -> Interval:
    """`now` over `before`, both positive ratios measured independently, with the interval of the quotient.

    The distances from each estimate to the end that matters are squared, added and rooted, in log space: "square and
    add" (Newcombe 1998, Statistics in Medicine 17, 873–890), shown to hold for intervals of any make by Zou and Donner
    (2008, Statistics in Medicine 27, 1693–1702). For two symmetric intervals these are the half-widths in quadrature.
    Its confidence is that of the two. Raises ValueError for a ratio that is not positive.
    """
    logs = [_logs(before), _logs(now)]
    (a, a_lo, a_hi), (b, b_lo, b_hi) = logs
    estimate = b - a
    return Interval(
        math.exp(estimate), math.exp(estimate - math.hypot(b - b_lo, a_hi - a)),
        math.exp(estimate + math.hypot(b_hi - b, a - a_lo)),
    )


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
