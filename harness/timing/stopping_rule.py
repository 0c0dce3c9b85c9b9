"""When a candidate has rounds enough: its interval is narrow, its time is spent, or more of them would say little."""

from __future__ import annotations

import math

from harness.model.device_limits import DeviceLimits
from harness.model.settings import Settings
from harness.timing.estimate import share_of_processes
from harness.timing.stats import (
    confidence_at, estimate_log_ratio, estimate_speedup, margin, narrows_by, next_check, should_stop, width_for,
)
from harness.timing.timings import Timing
from harness.timing.stability import is_known

_FEWEST_ROUNDS = 4  # in which each kind of interim check comes once, so that no row has fewer
# Stop at an interim check where the rounds to the next one would narrow the interval by less than this: noise alone
# would let half as many again by a quarter, and as many again by a third. Simulated with what was seen on an H200
# (rounds that scatter by 0.43 % at 16 µs and 0.25 % at 43 µs, baselines 0.5 or 1.5 % apart) and checks at 10, 20, 40 and
# 80, a budget of 33 rounds ends after 29 or 24 and 25 or 18, with an interval wider by 4 or 5 and 7 or 14 %, which
# holds the truth as often; by chance alone A/A is then within 0.19 to 0.21 % 95 times of 100 at 16 µs, for 0.16 % after
# all 33.
_WORTH_MORE_ROUNDS = 0.2
_AHEAD = 1.25  # times as many rounds as now, at least: checks are further apart than that
# Calls shorter than this have rounds that scatter by half a per cent and more. After 10 of them, which now and then agree
# by chance, eager at 16 µs was 0.2 % off itself (standard deviation, 6 of 41 controls on H200s), and 0.13 % after 30: so
# they go on for this share of the budget before it is asked whether the interval is narrow enough.
_SHORT_US, _SHORT_SHARE = 50.0, 0.42
# Beside what another process would get, this share of that is little: it makes the interval wider by a twentieth.
_LITTLE_BESIDE = 0.3
# Where launches cannot be queued ahead, the host's time is in them, and four rounds of a long call say little: up to the first
# check there is this many times the budget.
_UNGATED_BUDGETS = 4.0


def is_reached(timing: Timing, settings: Settings, elapsed_s: float, *, is_late: bool = False) -> bool:
    """Whether no more rounds are made after those in `timing`, in `elapsed_s`; `is_late` is past the row's budget."""
    interim_checks, rounds = settings.interim_checks, len(timing.log_ratios)
    if is_late and rounds >= _FEWEST_ROUNDS:
        return True
    if rounds + timing.dropped >= interim_checks[-1]:
        return True
    is_uneven = timing.launch_hidden is False and rounds < interim_checks[0]
    budget_s = _UNGATED_BUDGETS * settings.budget_s if is_uneven else settings.budget_s
    if elapsed_s > budget_s and rounds + timing.dropped >= _FEWEST_ROUNDS:
        return True
    # That check is no more than there are: those before it were not made.
    share = timing.rounds_until(_SHORT_SHARE * settings.budget_s)
    if rounds < interim_checks[0] or rounds not in (*interim_checks, share):
        return False
    if timing.is_short is None:
        timing.is_short = timing.shorter_us < _SHORT_US and not timing.is_pooled
    is_asked = share is not None if timing.is_short else rounds in interim_checks
    return is_asked and _is_narrow(timing, settings)


def _is_narrow(timing: Timing, settings: Settings) -> bool:
    """Whether the interval is narrow enough, or would hardly be narrower at the next interim check that is well ahead."""
    confidence = confidence_at(0, settings.interim_checks, settings.confidence)
    width = width_for(settings.half_width, timing.shorter_us)
    if timing.is_pooled:
        width = max(width, _LITTLE_BESIDE * share_of_processes(timing, settings.confidence, kernels=1))
    if should_stop(estimate_log_ratio(timing.ratios, confidence), width):
        return True
    if not timing.agreeing or timing.is_pooled:
        return False
    if not should_stop(estimate_log_ratio(timing.in_worker_log_ratios, confidence), margin(timing.shorter_us)):
        return False
    rounds = len(timing.log_ratios)
    # Not one that comes at once, as it may after the share of a short call: any round more narrows little.
    later = next_check(math.floor(_AHEAD * rounds), settings.interim_checks)
    return later is not None and narrows_by(
        timing.in_worker_log_ratios, timing.log_ratios, later, confidence
    ) < _WORTH_MORE_ROUNDS


def is_in_doubt(timing: Timing, settings: Settings, limits: DeviceLimits, *, is_late: bool) -> bool:
    """Return whether so few rounds scatter so much that the row would be unsure: up to the first interim check there are
    more then, whatever the budget, unless the row has no time. (Attention of 23 ms, 5 % apart from call to call on an
    H100, has the budget for four rounds, after which it was known to 20 % now and then.)
    """
    rounds = len(timing.log_ratios)
    if is_late or not 2 <= rounds < settings.interim_checks[0]:
        return False
    level = confidence_at(0, settings.interim_checks, settings.confidence)
    return not is_known(estimate_speedup(timing.ratios, level), rounds, limits, settings.half_width)
