"""Whether the rounds of a candidate are enough, and what they say: its speedup with an interval, and the word."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from harness.model.settings import Settings
from harness.timing.stats import (
    UNCOUNTED, Interval, call, check_of, confidence_at, estimate_log_ratio, estimate_speedup, lowered, margin,
    narrows_by, next_check, process_share, reaching, shifted, should_stop, spanning, trimmed_mean, unseen, width_for,
    with_share,
)
from harness.timing.stats.two_baselines import APART_LEAST_US
from harness.timing.timings import Timing

_FEWEST_ROUNDS = 4  # in which each kind of interim check comes once, so that no row has fewer
# Stop at an interim check where the rounds to the next one would narrow the interval by less than this: noise alone
# would let half as many again by a quarter, and as many again by a third. Simulated with what was seen on an H200
# (rounds that scatter by 0.43 % at 16 µs and 0.25 % at 43 µs, baselines 0.5 or 1.5 % apart) and looks at 10, 20, 40 and
# 80, a budget of 33 rounds ends after 29 or 24 and 25 or 18, with an interval wider by 4 or 5 and 7 or 14 %, which
# holds the truth as often; by chance alone A/A is then within 0.19 to 0.21 % 95 times of 100 at 16 µs, for 0.16 % after
# all 33.
_WORTH_MORE_ROUNDS = 0.2
_AHEAD = 1.25  # times as many rounds as now, at least: looks are further apart than that
# Calls shorter than this have rounds that scatter by half a per cent and more. After 10 of them, which now and then agree
# by chance, eager at 16 µs was 0.2 % off itself (standard deviation, 6 of 41 controls on H200s), and 0.13 % after 30: so
# they go on for this share of the budget before anybody looks whether the interval is narrow enough.
_SHORT_US, _SHORT_SHARE = 50.0, 0.42
# Beside what another process would get, this share of that is little: it makes the interval wider by a twentieth.
_LITTLE_BESIDE = 0.3
# Where launches cannot be queued ahead, the host's time is in them, and four rounds of a long call say little: up to the first
# look there is this many times the budget.
_UNGATED_BUDGETS = 4.0
_UNSEEN = (
    "by the judge's own clock a call may take longer than its clock says, by what the column unseen_us has: its rank and the "
    "low end of its speedup count that"
)
_BRIEFLY = 2.0  # times as far as what was seen an interval of a few calls reaches


def enough(timing: Timing, settings: Settings, elapsed_s: float, *, is_late: bool = False) -> bool:
    """Whether no more rounds are to be made after those in `timing`, which took `elapsed_s`; `is_late` where the time of the
    whole row is over.
    """
    interim_checks, rounds = settings.interim_checks, len(timing.log_ratios)
    if is_late and rounds >= _FEWEST_ROUNDS:
        return True
    if rounds + timing.dropped >= interim_checks[-1]:
        return True
    is_uneven = timing.launch_hidden is False and rounds < interim_checks[0]
    budget_s = _UNGATED_BUDGETS * settings.budget_s if is_uneven else settings.budget_s
    if elapsed_s > budget_s and rounds + timing.dropped >= _FEWEST_ROUNDS:
        return True
    # That look is no more than there are: those before it were not taken.
    share = timing.rounds_until(_SHORT_SHARE * settings.budget_s)
    if rounds < interim_checks[0] or rounds not in (*interim_checks, share):
        return False
    if timing.is_short is None:
        timing.is_short = timing.shorter_us < _SHORT_US and not timing.is_pooled
    is_asked = share is not None if timing.is_short else rounds in interim_checks
    return is_asked and _is_known(timing, settings)


def _is_known(timing: Timing, settings: Settings) -> bool:
    """Whether the interval is narrow enough, or would hardly be narrower at the next interim check that is well ahead."""
    timing.refine()
    confidence = confidence_at(0, settings.interim_checks, settings.confidence)
    width = width_for(settings.half_width, timing.shorter_us)
    if timing.is_pooled:
        width = max(width, _LITTLE_BESIDE * _share(timing, settings.confidence, kernels=1))
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


def estimate(timing: Timing, settings: Settings) -> None:
    """Give `timing` its speedup, with the confidence and the word; none after fewer than two rounds."""
    interim_checks = settings.interim_checks
    if len(timing.log_ratios) < 2:
        return
    timing.refine()
    level = confidence_at(check_of(len(timing.log_ratios), interim_checks), interim_checks, settings.confidence)
    timing.confidence = settings.confidence
    timing.speedup = estimate_speedup(timing.ratios, level)
    if timing.is_pooled:
        timing.speedup = shifted(timing.speedup, timing.pooled_baseline)
    elif timing.agreeing:
        timing.speedup = reaching(timing.speedup, estimate_speedup(timing.log_ratios, level))
    timing.scattered = timing.speedup
    if not (timing.agreeing or timing.is_pooled):
        if timing.apart_as_processes:
            timing.speedup = spanning(estimate_speedup(timing.in_worker_log_ratios, level), timing.speedup)
        elif timing.unseen_process:
            timing.speedup = unseen(timing.speedup, timing.shorter_us)
    if not timing.agreeing:
        timing.notes += _notes_on_baselines(timing)
    timing.of_this_process = timing.speedup
    allow_for_other_processes(timing, settings.confidence)


def allow_for_other_processes(
    timing: Timing, confidence: float, kernels: int = UNCOUNTED, baseline_kernels: int = UNCOUNTED
) -> None:
    """Have the speedup's interval hold what another process would get, and the word with it; a call is so many `kernels`,
    one of the baseline's `baseline_kernels`.
    """
    timing.speedup = timing.of_this_process
    if timing.is_of_its_process:
        share = with_share(timing.scattered, _share(timing, confidence, kernels, baseline_kernels))
        timing.speedup = spanning(share, timing.of_this_process)
    if timing.is_pooled:
        timing.speedup = lowered(timing.speedup, timing.pooled_baseline, timing.baseline_time_us)
    timing.word = call(timing.speedup, timing.shorter_us, timing.control_apart)


def estimate_briefly(timing: Timing, confidence: float) -> None:
    """Give a brief `timing` its speedup, with an interval of twice as far as what was seen reaches to either side.

    Three rounds have no interval of their own on a machine that is busy, and need none: what is told apart is a factor of
    ten or more.
    """
    timing.confidence = confidence
    least = min(timing.baseline_us) / max(timing.candidate_us)
    most = max(timing.baseline_us) / min(timing.candidate_us)
    timing.speedup = Interval(math.exp(trimmed_mean(timing.log_ratios)), least / _BRIEFLY, most * _BRIEFLY)
    if timing.is_pooled:
        timing.speedup = shifted(timing.speedup, timing.pooled_baseline)
    timing.scattered = timing.of_this_process = timing.speedup
    timing.control_apart = 0.0  # however far the control is off itself, that is no such factor
    allow_for_other_processes(timing, confidence)


def span_usual_baseline(timing: Timing, usual_us: float, confidence: float) -> float:
    """Have the interval reach what it would be over the baseline's usual time, where that took longer beside the candidate: a
    device that waits for seconds in between has slowed down by the next call, and a host takes what time it takes.

    Returns how many times as long it took, 1 at least.
    """
    times = timing.baseline_time_us / usual_us
    if times <= 1 or timing.of_this_process is None:
        return 1.0
    timing.of_this_process = replace(timing.of_this_process, lo=timing.of_this_process.lo / times)
    allow_for_other_processes(timing, confidence)
    return times


def count_unseen(timing: Timing, unseen_us: float, confidence: float) -> None:
    """Have the low end of the interval, and the rank, be those of a call that takes `unseen_us` longer than it says."""
    if not unseen_us or timing.of_this_process is None:
        return
    timing.unseen_us = unseen_us
    timing.of_this_process = replace(timing.of_this_process, lo=timing.of_this_process.lo / timing.times_unseen)
    allow_for_other_processes(timing, confidence)
    timing.notes.append(_UNSEEN)


def _share(timing: Timing, confidence: float, kernels: int, baseline_kernels: int = UNCOUNTED) -> float:
    over = timing.pooled_baseline if timing.is_pooled else None
    return process_share(timing.time_us, timing.baseline_time_us, confidence, over, kernels, baseline_kernels)


def _notes_on_baselines(timing: Timing) -> list[str]:
    """Why the speedup is over the judge's baseline alone, and what its interval holds beside that."""
    if timing.in_worker_fault:
        rounds = " in all rounds" if timing.in_worker_us else ""
        said = f"eager could not be timed in its process{rounds} ({timing.in_worker_fault})"
    elif timing.in_worker_us:
        said = (
            f"eager took {statistics.median(timing.in_worker_us):.1f} µs in its process and "
            f"{timing.baseline_time_us:.1f} µs in the judge's"
            + ("" if timing.apart_as_processes else ", more than processes differ by")
        )
    else:
        return []
    if timing.is_pooled:
        return [f"{said}: the speedup is over its mean of {timing.pooled_baseline.processes} processes"]
    if timing.apart_as_processes:
        held = ", and its interval spans both"
    elif timing.unseen_process:
        held = f", and its interval {APART_LEAST_US:g} µs wider at either end for what a process adds to a call"
    else:
        held = ""
    return [f"{said}: the speedup is over the judge's{held}"]
