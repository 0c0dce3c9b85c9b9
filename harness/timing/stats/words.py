"""The one word beside a speedup: FASTER, SLOWER, SAME or UNSURE.

A difference below the margin may be real and still mean nothing (two processes running the same kernel differ
by that much), so the whole interval has to lie beyond the margin before a difference is called one.
"""

from __future__ import annotations

from harness.timing.stats.trimmed_mean import Interval

# Shortest duration in µs of each class, and the relative margin below which two kernels count as the same.
MARGINS = ((1000.0, 0.001), (50.0, 0.002), (0.0, 0.005))


def margin(duration_us: float) -> float:
    """Relative margin of a call this long: 0.1 % from 1 ms, 0.2 % from 50 µs, else 0.5 %. Raises ValueError below 0."""
    for shortest_us, relative in MARGINS:
        if duration_us >= shortest_us:
            return relative
    raise ValueError(f"a call cannot take {duration_us} µs")


def speedup_word(interval: Interval, duration_us: float, control_apart: float = 0.0) -> str:
    """Word (FASTER, SLOWER, SAME or UNSURE) for a speedup interval in ratio space.

    The margin is `margin(duration_us)`, the duration being that of the shorter of the two calls. Nothing is FASTER or SLOWER
    within the factor 1 + `control_apart`, by which the baseline itself may be off itself as a candidate.
    """
    own, factor = word(interval, margin(duration_us)), 1 + control_apart
    return own if own == "SAME" or interval.lo > factor or interval.hi < 1 / factor else "UNSURE"


def word(interval: Interval, m: float) -> str:
    """FASTER when the whole interval is above 1 + m, SLOWER below 1 − m, SAME inside ±m or at it, else UNSURE."""
    if interval.lo > 1 + m:
        return "FASTER"
    if interval.hi < 1 - m:
        return "SLOWER"
    if interval.lo >= 1 - m and interval.hi <= 1 + m:
        return "SAME"
    return "UNSURE"
