"""How many launches of either side a segment has, by the times of a first few, and whether a few calls are enough for all."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping

from harness.protocol.rotation import PLACES, whole_rotations
from harness.timing.timings import HalfRound

# One whole rotation: more rounds of fewer launches say more of their own scatter in the same time.
MOST_LAUNCHES = 16
# A segment lasts no longer by the judge's clock than this many times what it should by the candidate's, where the
# harness's own steps take most of it, or where the candidate's clock says next to nothing.
_MOST_STRETCH = 20
# Arms that differ by less at first, which on a busy machine says no more, have segments of as many launches: the
# mean of the middle half of 2 lies 1.7 % above that of 4 where one launch in ten takes 1.3 times as long (simulated).
_ALIKE = 2.0
_LEAST_US = 0.5
_SEGMENTS = 4  # of a round
# Rounds take a candidate about so many calls with all that is done around them. One that takes as many times as long as the
# baseline, or fewer where its row has no time for all, is timed in few calls: no interval is needed to call it SLOWER.
_CALLS_OF_ROUNDS = 35
FAR_SLOWER, SLOWER = 100.0, 10.0


def launches_wanted(sizing: HalfRound, segment_ms: float, round_s: float = math.inf) -> dict[str, int]:
    """How many launches of each arm, "A" and "B", take `segment_ms`, and not much longer by the judge's clock; nor so
    long that a round takes more than `round_s`, where fewer launches would have it.
    """
    segment_us = segment_ms * 1e3
    typical_us = {
        arm: max(statistics.median(times_us), _LEAST_US)
        for arm, times_us in (("A", sizing.candidate_us), ("B", sizing.baseline_us))
    }
    are_alike = max(typical_us.values()) < _ALIKE * min(typical_us.values())
    if are_alike:
        typical_us = dict.fromkeys(typical_us, math.sqrt(math.prod(typical_us.values())))
    wanted = {arm: math.ceil(segment_us / call_us) for arm, call_us in typical_us.items()}
    if sizing.wall_us:
        wall_us = statistics.median(sizing.wall_us)
        most = math.ceil(_MOST_STRETCH * segment_us / wall_us)
        # Of each segment one launch leads in. A few rounds of more launches have an interval several times as wide.
        most = max(1, math.floor(min(most, 1e6 * round_s / (_SEGMENTS * wall_us) - 1)))
        wanted = {arm: min(count, most) if arm == "A" or are_alike else count for arm, count in wanted.items()}
    return wanted


def with_lead_ins(wanted: Mapping[str, int], most: int) -> dict[str, int]:
    """The launches of each arm in a segment, lead-ins with them, of whole rotations and of `most` that memory has room for."""
    return {arm: 1 + max(1, min(whole_rotations(min(MOST_LAUNCHES, count)), most - 1)) for arm, count in wanted.items()}


def fewer_that_fit(
    counts: Mapping[str, int], fits: Callable[[Mapping[str, int]], bool], *, is_shorter: bool = False
) -> dict[str, int] | None:
    """As many launches of each arm, lead-ins with them, as `fits` finds a queue to hold where it does not hold `counts`:
    one or four beside the lead-in; None where it holds none. `is_shorter` where a queue of `counts` is shorter now than the
    one that was late.

    A stream takes some thousand kernels, and whoever queues more waits until some have run. Two launches are tried
    first: what synchronises fits in no queue, and is not to cost more than to find that out.
    """
    two, five = ({arm: min(count, most) for arm, count in counts.items()} for most in (2, 1 + PLACES))
    if (two == counts and not is_shorter) or not fits(two):
        return None
    return five if five not in (two, counts) and fits(five) else two


def takes_times(half: HalfRound, times: float) -> bool:
    """Whether a call of the candidate takes so many times as long as one of the baseline, or longer."""
    candidate_us, baseline_us = map(statistics.median, (half.candidate_us, half.baseline_us))
    return candidate_us > times * baseline_us


def is_far_slower(sizing: HalfRound, budget_s: float, ends_s: float) -> bool:
    """Whether a few calls tell all that there is to tell of a candidate, whose row ends at `ends_s`, by time.monotonic()."""
    rounds_s = _CALLS_OF_ROUNDS * statistics.median(sizing.candidate_us) / 1e6
    if takes_times(sizing, FAR_SLOWER):
        return rounds_s > budget_s
    return takes_times(sizing, SLOWER) and time.monotonic() + rounds_s > ends_s
