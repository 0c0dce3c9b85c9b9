"""What the rounds of a candidate say: its speedup with an interval, and the word."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

from harness.model.settings import Settings
from harness.timing.stats import (
    UNCOUNTED, Interval, check_of, confidence_at, estimate_speedup, lowered, process_share, reaching, shifted, spanning,
    speedup_word, trimmed_mean, unseen, with_share,
)
from harness.timing.stats.two_baselines import APART_LEAST_US
from harness.timing.timings import Timing

_UNVOUCHED = "by the judge's clock a call may take longer (column unvouched_us): its low end counts that, as a rank does"
_BRIEFLY = 2.0  # times as far as what was seen an interval of a few calls reaches


def estimate(timing: Timing, settings: Settings) -> None:
    """Give `timing` its speedup, with the confidence and the word; none after fewer than two rounds."""
    interim_checks = settings.interim_checks
    if len(timing.log_ratios) < 2:
        return
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
    """Have interval and word hold what another process would get; the `kernels` of a call, and the baseline's, tell."""
    timing.speedup = timing.of_this_process
    if timing.is_of_its_process:
        share = with_share(timing.scattered, share_of_processes(timing, confidence, kernels, baseline_kernels))
        timing.speedup = spanning(share, timing.of_this_process)
    if timing.is_pooled:
        timing.speedup = lowered(timing.speedup, timing.pooled_baseline, timing.baseline_time_us)
    timing.word = speedup_word(timing.speedup, timing.shorter_us, timing.control_apart)


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


def span_usual_baseline(timing: Timing, usual_us: float, confidence: float) -> None:
    """Have the interval reach what it is over the baseline's usual time, where it was slower beside the candidate."""
    times = timing.baseline_time_us / usual_us
    if times <= 1 or timing.of_this_process is None:
        return
    timing.times_slowed = times
    timing.of_this_process = replace(timing.of_this_process, lo=timing.of_this_process.lo / times)
    allow_for_other_processes(timing, confidence)


def count_unvouched(timing: Timing, unvouched_us: float, confidence: float) -> None:
    """Have the low end of the interval, and the rank, be those of a call that takes `unvouched_us` longer than it says."""
    if not unvouched_us or timing.of_this_process is None:
        return
    timing.unvouched_us = unvouched_us
    timing.of_this_process = replace(timing.of_this_process, lo=timing.of_this_process.lo / timing.times_unvouched)
    allow_for_other_processes(timing, confidence)
    timing.notes.append(_UNVOUCHED)


def share_of_processes(timing: Timing, confidence: float, kernels: int, baseline_kernels: int = UNCOUNTED) -> float:
    """What another process would get, as a share: beyond what the rounds of this one scatter by."""
    over = timing.pooled_baseline if timing.is_pooled else None
    return process_share(timing.time_us, timing.baseline_time_us, confidence, over, kernels, baseline_kernels)


def _notes_on_baselines(timing: Timing) -> list[str]:
    """Why the speedup is over the judge's baseline alone, and what its interval holds beside that."""
    if timing.in_worker_fault:
        rounds = " in all rounds" if timing.in_worker_us else ""
        reason = f"eager could not be timed in its process{rounds} ({timing.in_worker_fault})"
    elif timing.in_worker_us:
        reason = (
            f"eager took {statistics.median(timing.in_worker_us):.1f} µs in its process and "
            f"{timing.baseline_time_us:.1f} µs in the judge's"
            + ("" if timing.apart_as_processes else ", more than processes differ by")
        )
    else:
        return []
    if timing.is_pooled:
        return [f"{reason}: the speedup is over its mean of {timing.pooled_baseline.processes} processes"]
    if timing.apart_as_processes:
        held = ", and its interval spans both"
    elif timing.unseen_process:
        held = f", and its interval {APART_LEAST_US:g} µs wider at either end for what a process adds to a call"
    else:
        held = ""
    return [f"{reason}: the speedup is over the judge's{held}"]
