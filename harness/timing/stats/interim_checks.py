"""When to look at the rounds measured so far, with what confidence, and when they are enough.

Looking several times and stopping when it suits makes a plain 99 % interval wrong more than 1 % of the time.
The looks are therefore fixed before the first round and share the allowed error between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.timing.stats.trimmed_mean import Interval
from harness.timing.stats.words import MARGINS, margin

CHECKS = (10, 20, 40, 80)


def confidence_at(check_index: int, interim_checks: Sequence[int] = CHECKS, confidence: float = 0.99) -> float:
    """Confidence of the interval at one interim check, such that all interim checks together err at most 1 −
    `confidence`.

    Equal shares, α/K each (Bonferroni's inequality), which assumes nothing about the noise or about how the
    looks hang together. A Pocock boundary, derived for normal sums of known variance, would make the interval
    1.6 % narrower at 10, 20, 40, 80 rounds and 99 % (simulated): not worth its assumptions. `check_index`
    counts from 0. Raises IndexError outside `interim_checks`, ValueError for a confidence outside (0, 1).
    """
    if not 0 <= check_index < len(interim_checks):
        raise IndexError(f"look {check_index} of {len(interim_checks)}")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not {confidence}")
    return 1 - (1 - confidence) / len(interim_checks)


def check_of(rounds_done: int, interim_checks: Sequence[int] = CHECKS) -> int:
    """Index of the interim check whose share of the error pays for an estimate after `rounds_done` rounds.

    The first look at or beyond that many rounds, the last for more than planned. A budget that runs out
    between two interim checks ends the run whatever the estimate says, so it takes the place of the next interim check.
    """
    ahead = (index for index, rounds in enumerate(interim_checks) if rounds_done <= rounds)
    return next(ahead, len(interim_checks) - 1)


def next_check(rounds_done: int, interim_checks: Sequence[int] = CHECKS) -> int | None:
    """Number of rounds at which to look next, or None when the last interim check has been taken."""
    return min((rounds for rounds in interim_checks if rounds > rounds_done), default=None)


def should_stop(interval_of_log_ratio: Interval, half_width: float) -> bool:
    """Whether the interval, in log-ratio, is as narrow as the relative `half_width` (0.001 = 0.1 %)."""
    return interval_of_log_ratio.half_width <= math.log1p(half_width)


def width_for(half_width: float, duration_us: float) -> float:
    """Relative half-width at which the interval of a call of this duration is narrow enough.

    `half_width` is for calls from 1 ms on. Shorter ones have wider margins and scatter more, so they may stop at
    theirs, in proportion; but at their margin at the latest, where `half_width` is not wider itself.
    """
    of_margin = margin(duration_us)
    return max(half_width, of_margin * min(1.0, half_width / MARGINS[0][1]))
