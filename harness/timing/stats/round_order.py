"""One round: the order in which the two arms take their segments, and the log-ratio that comes of it.

A is the candidate, B the baseline. Each arm is timed twice per round, placed so that a clock or a temperature
that drifts linearly through the round falls on both alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.timing.stats.trimmed_mean import middle_half, trimmed_mean

# A segment of whole rotations has launches of a faster and a slower kind, half of them each (protocol/rotation.py).
_WHOLE_ROTATION = 16
# So few of a segment, two of sixteen, are not seen where a candidate is looked at (timing/probes/result.py): they must
# count for nothing either. An eighth would scatter by 3 % less (7 controls of 16 µs on an H200).
_HALF_TRIM = 0.25
# In halves, with one segment of A each. Joined, BB is one segment of twice as many launches, which saves a lead-in; not AA,
# since a queue that is longer than others would tell a worker that it is none of those in which it is looked at.
ORDER, ORDER_JOINED = (("AB", "BA"), ("BA", "AB")), (("ABB", "A"), ("A", "BBA"))
# With the baseline timed beside the candidate in its process too (I). The estimate is over that one, and the one outside
# is its guard, for which a segment in the middle of each round is enough: it takes as long as either of the others.
ORDER_BESIDE = (("AIB", "IA"), ("IAB", "AI"))


def order_of_round(index: int, *, beside: bool = False, joined: bool = False) -> tuple[str, str]:
    """The segments of round `index`, counted from 0, in order and in two halves: ABBA and BAAB in turn.

    Where they are `joined`, it is ABBA each time, and BB, which is to be made as one, stands in the one half and in the
    other in turn: in the first it follows A at once, in the second what is done between halves. With `beside` the
    baseline in the candidate's own process (I) takes the place of B, which stands once in the middle.
    """
    if beside:
        return ORDER_BESIDE[index % 2]
    return (ORDER_JOINED if joined else ORDER)[index % 2]


def typical_us(times_us: Sequence[float]) -> float:
    """What a call takes: the mean of the middle half of its launches. Raises ValueError without any."""
    return middle_half(times_us)


def log_ratio(a_times_us: Sequence[Sequence[float]], b_times_us: Sequence[Sequence[float]]) -> float:
    """Log of B's time over A's in one round: positive when A, the candidate, is the faster.

    Each argument holds the segments of one arm, two or one in the middle, each a list of times per launch in µs from
    which the lead-in launch has been dropped. Where all of both are whole rotations a segment counts as `by_halves` of
    its launches, else as the mean of their middle half, and an arm as the mean of its segments. Never one arm this way and
    the other that way: one launch in ten of twice the length would be worth 2 % to the second. Raises ValueError for an
    arm of no or more segments, an empty segment, or a time that is not a positive finite number.
    """
    arms = [_logs(arm) for arm in (a_times_us, b_times_us)]
    are_whole = all(len(segment) >= _WHOLE_ROTATION for arm in arms for segment in arm)
    counts_as = by_halves if are_whole else middle_half
    a, b = (sum(map(counts_as, arm)) / len(arm) for arm in arms)
    return b - a


def _logs(segments: Sequence[Sequence[float]]) -> list[list[float]]:
    if len(segments) not in (1, 2):
        raise ValueError(f"an arm has one or two segments in a round, not {len(segments)}")
    for segment in segments:
        if not segment:
            raise ValueError("a segment without launches")
        for time_us in segment:
            if not (math.isfinite(time_us) and time_us > 0):
                raise ValueError(f"a launch cannot take {time_us} µs")
    return [[math.log(time_us) for time_us in segment] for segment in segments]


def by_halves(logs: Sequence[float]) -> float:
    """What a segment of one whole rotation or more counts as: the mean of the logs of its faster half and of its slower
    half, each without a quarter at either end.

    Not their median: launches on a GPU are of a faster and a slower kind, half of them each, and a median falls on
    either side of the gap. Nor the middle half: that would be the slowest of the fast and the fastest of the slow, of
    which one launch between the two kinds makes another choice. On an H200 (eight times eager against itself at 16 and 43
    µs, 22 to 34 rounds of 16 launches each) the trimmed mean of the rounds scattered by 0.43 % a round where it did by
    0.58 % (medians, bootstrapped; less in seven of the eight): as much as 1.8 times as many rounds give. Raises
    ValueError for fewer than two.
    """
    ordered, half = sorted(logs), len(logs) // 2
    return (trimmed_mean(ordered[:half], _HALF_TRIM) + trimmed_mean(ordered[-half:], _HALF_TRIM)) / 2
