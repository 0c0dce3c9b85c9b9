"""The speedup of a candidate over its baseline, from the log-ratios of the rounds.

Ratios are averaged as logs, so that the speedup of A over B is exactly one over that of B over A, and turned
back into a ratio at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.timing.stats.trimmed_mean import Interval, tukey_mclaughlin


def estimate_log_ratio(log_ratios: Sequence[float], confidence: float = 0.99) -> Interval:
    """20 % trimmed mean of the rounds' log-ratios with its interval; what `interim_checks.should_stop` asks for."""
    return tukey_mclaughlin(log_ratios, confidence)


def estimate_speedup(log_ratios: Sequence[float], confidence: float = 0.99) -> Interval:
    """Speedup as a ratio (2.0 = twice as fast) with its interval at `confidence`.

    `confidence` is that of the look at which the rounds ended (`interim_checks.confidence_at`). Raises ValueError for
    fewer than two rounds.
    """
    interval = estimate_log_ratio(log_ratios, confidence)
    return Interval(math.exp(interval.estimate), math.exp(interval.lo), math.exp(interval.hi))
