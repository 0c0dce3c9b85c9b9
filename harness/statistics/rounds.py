"""One round: the order in which the two arms take their segments, and the log-ratio that comes of it.

A is the candidate, B the baseline. Each arm is timed twice per round, placed so that a clock or a temperature
that drifts linearly through the round falls on both alike; the next round runs the other way round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.statistics.trimmed import trimmed_mean

# Cut from each end of a segment: an interrupt falls out, and of two kinds of launch as many of each remain.
_LAUNCH_TRIM = 0.25
ORDER = ("ABBA", "BAAB")


def order_of_round(index: int) -> str:
    """Order of the four segments of round `index`, counted from 0: ABBA and BAAB in turn."""
    return ORDER[index % 2]


def median(values: Sequence[float]) -> float:
    """Middle value, or the mean of the middle two. Raises ValueError without values."""
    if not values:
        raise ValueError("no values to take a median of")
    ordered, middle = sorted(values), len(values) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def typical_us(times_us: Sequence[float]) -> float:
    """What a call takes: the mean of the middle half of its launches. Raises ValueError without any."""
    return trimmed_mean(times_us, _LAUNCH_TRIM)


def log_ratio(a_times_us: Sequence[Sequence[float]], b_times_us: Sequence[Sequence[float]]) -> float:
    """Log of B's time over A's in one round: positive when A, the candidate, is the faster.

    Each argument holds the two segments of one arm, each a list of times per launch in µs from which the
    lead-in launch has been dropped. A segment counts as the mean of the logs of the middle half of its launches,
    and not as their median: launches on a GPU are of a faster and a slower kind, half of them each, and a median
    falls on either side of the gap. An arm counts as the mean of its segments. Raises ValueError for an arm without two segments, an empty segment, or a time
    that is not a positive finite number.
    """
    return _mean_log(b_times_us) - _mean_log(a_times_us)


def _mean_log(segments: Sequence[Sequence[float]]) -> float:
    if len(segments) != 2:
        raise ValueError(f"an arm has two segments in a round, not {len(segments)}")
    for segment in segments:
        if not segment:
            raise ValueError("a segment without launches")
        for time_us in segment:
            if not (math.isfinite(time_us) and time_us > 0):
                raise ValueError(f"a launch cannot take {time_us} µs")
    return sum(trimmed_mean([math.log(time_us) for time_us in segment], _LAUNCH_TRIM) for segment in segments) / 2
