"""One candidate against the same baseline in two processes: its own, and the judge's.

What a process adds to each launch of a kernel is its own for life (on an H200 up to 0.2 µs a launch, from 8 processes
of the same kernels). In the candidate's process it falls on both arms and leaves the ratio; in the judge's it does
not. But only the judge's baseline is out of the candidate's reach. So the first gives the estimate, as long as the
two agree to what processes differ by, and the interval reaches to where the second says it is. Its low end, on which
the word FASTER hangs, is never above what the second alone would say: nothing is gained by slowing the baseline in the
worker down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.timing.stats.trimmed_mean import Interval, reach_of, trimmed_mean, tukey_mclaughlin

# How far one function may differ between two processes: a share, and at least so many µs. What takes a millisecond and
# more differs by that least alone at 1 ms, and by no larger share beyond (0.05 % was seen, at 2.7 ms on an H200): a
# baseline that was slowed down inside would lift the estimate by all that is allowed here.
APART_SHARE, APART_LEAST_US = 0.03, 1.0
_LONG_US = 1000.0
# Of 119 processes with a call of 16 µs on an H200 two were apart from the judge's by 1.1 and 1.3 µs; the second one
# alone called eager 7 % faster and 7 % slower than itself.
_BARELY = 3


def baselines_agree(in_worker: Sequence[float], outside: Sequence[float], baseline_us: float, times: float = 1) -> bool:
    """Whether log-ratios over the two baselines are apart by no more than processes may be, or than `times` as much."""
    apart = abs(math.expm1(trimmed_mean(in_worker) - trimmed_mean(outside)))
    is_long = baseline_us >= _LONG_US
    most_apart = APART_LEAST_US / _LONG_US if is_long else max(APART_SHARE, APART_LEAST_US / baseline_us)
    return apart <= times * most_apart


def may_be_processes(in_worker: Sequence[float], outside: Sequence[float], baseline_us: float) -> bool:
    """Whether baselines that do not agree are still no further apart than two processes might be."""
    return baselines_agree(in_worker, outside, baseline_us, _BARELY)


def spanning(in_worker: Interval, outside: Interval) -> Interval:
    """The estimate over the baseline outside, with an interval that holds both intervals."""
    return Interval(outside.estimate, min(in_worker.lo, outside.lo), max(in_worker.hi, outside.hi))


def unseen(outside: Interval, shorter_us: float) -> Interval:
    """The interval over the baseline outside, wider at either end by what a process may add to the shorter call."""
    by = 1 + APART_LEAST_US / shorter_us
    return Interval(outside.estimate, outside.lo / by, outside.hi * by)


def reaching(in_worker: Interval, outside: Interval) -> Interval:
    """The interval over the baseline in the worker, down to the low end over the one outside, up to its estimate."""
    return Interval(in_worker.estimate, min(in_worker.lo, outside.lo), max(in_worker.hi, outside.estimate))


def narrows_by(in_worker: Sequence[float], outside: Sequence[float], rounds: int, confidence: float) -> float:
    """By which share `reaching` would be narrower after `rounds` rounds than after those so far, at `confidence`.

    Were they to scatter alike: then both intervals shrink about their estimates, and what lies between the two
    estimates stays. Raises ValueError as `tukey_mclaughlin` does.
    """
    both = [tukey_mclaughlin(each, confidence) for each in (in_worker, outside)]
    shrunk = reach_of(rounds, confidence) / reach_of(len(in_worker), confidence)
    reaches = [(each.estimate, shrunk * each.half_width) for each in both]
    later = [Interval(centre, centre - reach, centre + reach) for centre, reach in reaches]
    now = reaching(*both).half_width
    return 1 - reaching(*later).half_width / now if now else 0.0
