"""One candidate against the same baseline in two processes: its own, and the referee's.

What a process adds to each launch of a kernel is its own for life (on an H200 up to 0.2 µs a launch, from 8 processes
of the same kernels). In the candidate's process it falls on both arms and leaves the ratio; in the referee's it does not.
But only the referee's baseline is out of the candidate's reach. So the first gives the estimate, as long as the two
agree to what processes differ by, and the interval reaches to where the second says it is. Its low end, on which the
word FASTER hangs, is never above what the second alone would say: nothing is gained by slowing the baseline inside down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.statistics.trimmed import Interval, reach_of, trimmed_mean, tukey_mclaughlin

# How far one function may differ between two processes: a share, and at least so many µs.
APART_SHARE, APART_LEAST_US = 0.03, 1.0


def baselines_agree(inside: Sequence[float], outside: Sequence[float], baseline_us: float) -> bool:
    """Whether log-ratios over the baseline `inside` and `outside` the candidate's process are apart by no more."""
    apart = abs(math.expm1(trimmed_mean(inside) - trimmed_mean(outside)))
    return apart <= max(APART_SHARE, APART_LEAST_US / baseline_us)


def reaching(inside: Interval, outside: Interval) -> Interval:
    """The interval over the baseline inside, down to the low end of that over the one outside and up to its estimate."""
    return Interval(inside.estimate, min(inside.lo, outside.lo), max(inside.hi, outside.estimate))


def narrows_by(inside: Sequence[float], outside: Sequence[float], rounds: int, confidence: float) -> float:
    """By which share `reaching` would be narrower after `rounds` rounds than after those so far, at `confidence`.

    Were they to scatter alike: then both intervals shrink about their estimates, and what lies between the two
    estimates stays. Raises ValueError as `tukey_mclaughlin` does.
    """
    both = [tukey_mclaughlin(each, confidence) for each in (inside, outside)]
    shrunk = reach_of(rounds, confidence) / reach_of(len(inside), confidence)
    reaches = [(each.estimate, shrunk * each.half_width) for each in both]
    later = [Interval(centre, centre - reach, centre + reach) for centre, reach in reaches]
    now = reaching(*both).half_width
    return 1 - reaching(*later).half_width / now if now else 0.0
