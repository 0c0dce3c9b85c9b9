"""What another process would get: how far one function's time hangs on the process that it runs in, on a GPU.

A kernel is faster or slower in one process than in another for as long as both live, and no number of rounds in one of
them tells by how much. It goes by the launch: in eleven to eighteen processes each of one H200, candidates of one kernel,
16 to 94 µs, had a standard deviation of 0.08 to 0.16 µs from process to process, eager `tril(A @ B)`, which is two,
0.21 to 0.37 µs at 16 to 42 µs, and one of some ten products, 72 µs, 1.4 µs. Two of them share little of it (correlations
of 0.0 to 0.6); eager beside itself all (0.97 and more). So eager in the same process takes it off the ratio of eager to
itself, and off no other's that is as short. What does help is eager in several processes: its mean of n is off by the
root of n less, and all rows of a run are over the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from harness.timing.stats.trimmed_mean import Interval

# Standard deviation in µs, for each kernel of a call, of its time from process to process; of eager two, where nobody has
# counted. Beside other code of 70 and 360 µs no more than 0.12 µs of eager's are left in the ratio to eager in the same
# process, as the two begin to share it. At 2.7 ms times differed by no more than those of one process from minute to minute.
_EACH_KERNEL_US = 0.15
UNCOUNTED = 2
# So many at most were seen to add up; what more of them add is taken for independent.
_ADD_UP = 10
_SHORT_BELOW_US = 50.0
# Of a time that is none, before it is refused.
_MOST_SHARE = 10.0


@dataclass(frozen=True)
class PooledBaseline:
    """A baseline's mean time over `processes`, the judge's among them: `shift` is its log less that of the time in the
    judge, `deviation` the standard deviation of the logs, each process's (0 of one). `usual_us` is the time in the
    judge beside those others.
    """

    shift: float
    processes: int
    deviation: float
    usual_us: float = math.inf

    @staticmethod
    def of(shifts: Sequence[float], usual_us: float = math.inf) -> PooledBaseline:
        """From the log of the time in each other process less that of the time in the judge in the same rounds."""
        logs = [0.0, *shifts]
        return PooledBaseline(statistics.fmean(logs), len(logs), statistics.stdev(logs) if shifts else 0.0, usual_us)


def is_pooled(baseline_us: float) -> bool:
    """Whether a baseline is so short that its mean over several processes says more than its time in the candidate's.

    On an H200 the ratio to the mean of four was 1.1, 0.8 and 0.4 % from process to process at 16, 21 and 42 µs, that to the
    time in the same process 2.0, 1.1 and 0.4 %; at 70 µs 0.17 and 0.09 to 0.17 %, at 360 µs 0.07 and 0.03 %.
    """
    return baseline_us < _SHORT_BELOW_US


def process_share(
    candidate_us: float, baseline_us: float, confidence: float, baseline: PooledBaseline | None = None,
    kernels: int = UNCOUNTED, baseline_kernels: int = UNCOUNTED,
) -> float:
    """By how much of itself the ratio of two functions may be another in another process, one-sided, at `confidence`.

    The first of them launches so many `kernels` a call, the baseline `baseline_kernels`. What is known of the `baseline` in
    several processes, where the ratio is over its mean of them, makes its part of it less, or more.
    """
    own = _normal(confidence) * _EACH_KERNEL_US * _added(kernels) / candidate_us
    return min(math.hypot(own, eager_share(baseline_us, confidence, baseline, baseline_kernels)), _MOST_SHARE)


def eager_share(
    baseline_us: float, confidence: float, baseline: PooledBaseline | None = None, kernels: int = UNCOUNTED
) -> float:
    """The part of `process_share` that is the baseline's, of so many `kernels`. Half of them from 50 µs on, where two
    calls begin to share it. Where its several processes are further apart than is known of an H200, that counts.
    """
    is_alone = baseline is not None or is_pooled(baseline_us)
    share = _EACH_KERNEL_US * _added(kernels if is_alone else kernels / UNCOUNTED) / baseline_us
    if baseline is not None:
        share = max(share, baseline.deviation) / math.sqrt(baseline.processes)
    return _normal(confidence) * share


def _added(kernels: float) -> float:
    """How many times what one kernel adds is added by so many."""
    return max(kernels, 1) if kernels <= _ADD_UP else math.sqrt(_ADD_UP * kernels)


def _normal(confidence: float) -> float:
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def with_share(interval: Interval, share: float) -> Interval:
    """`interval`, whose ends are a further `share` away, independently of what they are away now (squared, in logs)."""
    up, down = (math.hypot(math.log(end / interval.estimate), share) for end in (interval.hi, interval.lo))
    return Interval(interval.estimate, interval.estimate * math.exp(-down), interval.estimate * math.exp(up))


def shifted(interval: Interval, baseline: PooledBaseline) -> Interval:
    """The speedup over the baseline in the judge as one over its mean of several processes."""
    by = math.exp(baseline.shift)
    return Interval(interval.estimate * by, interval.lo * by, interval.hi * by)


def lowered(interval: Interval, baseline: PooledBaseline, baseline_us: float) -> Interval:
    """`interval`, over a baseline that took `baseline_us` in the judge, with the low end that it would have over what
    it usually takes there, where that is less: who slows the baseline beside it gains nothing there.
    """
    return Interval(interval.estimate, interval.lo * min(1.0, baseline.usual_us / baseline_us), interval.hi)
