"""What another process would get: how far one function's time hangs on the process that it runs in, on a GPU.

A kernel is faster or slower in one process than in another for as long as both live, and no number of rounds in one of
them tells by how much. Two kernels do not share it: of 18 processes of one H200 with eager `tril(A @ B)` at 16 µs beside
another kernel, eager had a standard deviation of 0.34 and 0.37 µs from process to process, kernels of 22 and 29 µs
0.10 and 0.09 µs, and what eager had more than usual the others had 0.15 to 0.19 of. Eager beside itself had all of it
(correlation 0.99). So it leaves the ratio of a function to itself, and of no other.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from harness.statistics.trimmed import Interval

# Standard deviation in µs of one function's time from process to process. Of 200 processes with eager on H200s it was
# 0.28 at 16 µs, and 0.14 at 0.36 ms (what the referee's eager and the player's differ by, less what launches scatter by). At
# 2.7 ms times differed by no more than those of one process from minute to minute do. Between, nobody has looked.
_OF_SHORT_US, _OF_LONG_US = 0.3, 0.15
_SHORT_BELOW_US = 100.0
# Of a time that is none, before it is refused.
_MOST_SHARE = 10.0


def process_share(candidate_us: float, baseline_us: float, confidence: float) -> float:
    """By how much of itself the ratio of two functions may be another in another process, one-sided, at `confidence`."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    both = (_deviation_us(each) / each for each in (candidate_us, baseline_us))
    return min(z * math.hypot(*both), _MOST_SHARE)


def with_share(interval: Interval, share: float) -> Interval:
    """`interval`, whose ends are a further `share` away, independently of what they are away now (squared, in logs)."""
    up, down = (math.hypot(math.log(end / interval.estimate), share) for end in (interval.hi, interval.lo))
    return Interval(interval.estimate, interval.estimate * math.exp(-down), interval.estimate * math.exp(up))


def _deviation_us(duration_us: float) -> float:
    return max(_OF_LONG_US, _OF_SHORT_US * min(1.0, _SHORT_BELOW_US / duration_us))
