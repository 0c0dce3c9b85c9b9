"""Whether the rounds of a candidate are enough, and what they say: its speedup with an interval, and the word."""

from __future__ import annotations

import statistics as stdlib_statistics

from harness.referee.timed import Timing
from harness.settings import Settings
from harness.statistics import (
    call, confidence_at, estimate_log_ratio, estimate_speedup, look_of, margin, narrows_by, next_look, reaching,
    should_stop, spanning, width_for,
)

_FEWEST_ROUNDS = 4
# Stop at a look where the rounds to the next one would narrow the interval by less than this: noise alone would let
# half as many again by a quarter, and as many again by a third. Simulated with what was seen on an H200 (rounds that
# scatter by 0.43 % at 16 µs and 0.25 % at 43 µs, baselines 0.5 or 1.5 % apart) and looks at 10, 20, 40 and 80, a budget of
# 33 rounds ends after 29 or 24 and 25 or 18, with an interval wider by 4 or 5 and 7 or 14 %, which holds the truth as
# often; by chance alone A/A is then within 0.19 to 0.21 % 95 times of 100 at 16 µs, for 0.16 % after all 33.
_WORTH_MORE_ROUNDS = 0.2


def enough(timing: Timing, settings: Settings, *, out_of_time: bool) -> bool:
    """Whether no more rounds are to be made after those in `timing`."""
    looks = settings.looks
    rounds = len(timing.log_ratios)
    if rounds + timing.dropped >= looks[-1]:
        return True
    if out_of_time and rounds + timing.dropped >= _FEWEST_ROUNDS:
        return True
    if rounds not in looks:
        return False
    confidence = confidence_at(looks.index(rounds), looks, settings.confidence)
    width = width_for(settings.half_width, timing.shorter_us)
    if should_stop(estimate_log_ratio(timing.ratios, confidence), width):
        return True
    return timing.agreeing and _narrows_no_more(timing, settings, confidence)


def _narrows_no_more(timing: Timing, settings: Settings, confidence: float) -> bool:
    """Whether the speedup is known to its margin, and the rounds to the next look would hardly narrow its interval."""
    known = estimate_log_ratio(timing.inside_log_ratios, confidence)
    if not should_stop(known, margin(timing.shorter_us)):
        return False
    later = next_look(len(timing.log_ratios), settings.looks)
    return narrows_by(timing.inside_log_ratios, timing.log_ratios, later, confidence) < _WORTH_MORE_ROUNDS


def estimate(timing: Timing, settings: Settings) -> None:
    """Give `timing` its speedup, with the confidence and the word; none after fewer than two rounds."""
    looks = settings.looks
    if len(timing.log_ratios) < 2:
        return
    level = confidence_at(look_of(len(timing.log_ratios), looks), looks, settings.confidence)
    timing.confidence = settings.confidence
    timing.speedup = estimate_speedup(timing.ratios, level)
    if timing.agreeing:
        timing.speedup = reaching(timing.speedup, estimate_speedup(timing.log_ratios, level))
    elif timing.inside_us:
        span = timing.apart_as_processes
        if span:
            timing.speedup = spanning(estimate_speedup(timing.inside_log_ratios, level), timing.speedup)
        timing.notes.append(
            f"eager took {stdlib_statistics.median(timing.inside_us):.1f} µs in its process and "
            f"{timing.baseline_time_us:.1f} µs in the referee's: the speedup is over the latter"
            + (", and its interval spans both" if span else "")
        )
    timing.word = call(timing.speedup, timing.shorter_us)
