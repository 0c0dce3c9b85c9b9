"""When to look at the rounds measured so far, with what confidence, and when they are enough.

Looking several times and stopping when it suits makes a plain 99 % interval wrong more than 1 % of the time.
The looks are therefore fixed before the first round and share the allowed error between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.timing.stats.trimmed_mean import Interval

LOOKS = (10, 20, 40, 80)


def confidence_at(look_index: int, looks: Sequence[int] = LOOKS, confidence: float = 0.99) -> float:
    """Confidence of the interval at one look, such that all looks together err at most 1 − `confidence`.

    Equal shares, α/K each (Bonferroni's inequality), which assumes nothing about the noise or about how the
    looks hang together. A Pocock boundary, derived for normal sums of known variance, would make the interval
    1.6 % narrower at 10, 20, 40, 80 rounds and 99 % (simulated): not worth its assumptions. `look_index`
    counts from 0. Raises IndexError outside `looks`, ValueError for a confidence outside (0, 1).
    """
    if not 0 <= look_index < len(looks):
        raise IndexError(f"look {look_index} of {len(looks)}")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not {confidence}")
    return 1 - (1 - confidence) / len(looks)


def look_of(rounds_done: int, looks: Sequence[int] = LOOKS) -> int:
    """Index of the look whose share of the error pays for an estimate after `rounds_done` rounds.

    The first look at or beyond that many rounds, the last for more than planned. A budget that runs out
    between two looks ends the run whatever the estimate says, so it takes the place of the next look.
    """
    for index, rounds in enumerate(looks):
        if rounds_done <= rounds:
            return index
    return len(looks) - 1


def next_look(rounds_done: int, looks: Sequence[int] = LOOKS) -> int | None:
    """Number of rounds at which to look next, or None when the last look has been taken."""
    return min((rounds for rounds in looks if rounds > rounds_done), default=None)


def should_stop(interval_of_log_ratio: Interval, half_width: float) -> bool:
    """Whether the interval, in log-ratio, is as narrow as the relative `half_width` (0.001 = 0.1 %)."""
    return interval_of_log_ratio.half_width <= math.log1p(half_width)
