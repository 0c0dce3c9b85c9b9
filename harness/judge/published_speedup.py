"""What the timings of an entry's workers amount to: the speedup that is published, its interval and its word."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.judge.judgement import Judgement, Prepared
from harness.launch import failures
from harness.model.settings import Settings
from harness.model.verdict import ReasonCode, Status
from harness.timing.estimate import allow_for_other_processes
from harness.timing.stats import (
    UNCOUNTED, Interval, confidence_at, eager_share, estimate_log_ratio, lowered, reaching, shifted, spanning, speedup_word,
    trimmed_mean, tukey_mclaughlin, unseen, with_share,
)
from harness.timing.timings import Timing


def conclude(prepared: Prepared, judgement: Judgement, settings: Settings, baseline_kernels: int) -> None:
    """Give `judgement` its speedup, word and warnings. Raises Failed where more rounds were dropped than kept."""
    timings = judgement.timings
    dropped = sum(timing.dropped for timing in timings)
    kept = sum(len(timing.log_ratios) for timing in timings)
    if dropped > kept or any(timing.speedup is None for timing in timings):
        raise failures.failed(
            Status.UNSURE, ReasonCode.THROTTLED,
            f"{dropped} of {dropped + kept} rounds were dropped because the GPU slowed down for heat or its power "
            "supply; let it cool and run again",
        )
    first = judgement.timing
    if judgement.launched:
        allow_for_other_processes(first, settings.confidence, judgement.launched, baseline_kernels)
    judgement.speedup, judgement.word = first.speedup, first.word
    if len(timings) > 1:
        judgement.speedup = published(timings, settings.confidence, settings.interim_checks, baseline_kernels)
        judgement.word = speedup_word(judgement.speedup, first.shorter_us, first.control_apart)
    if prepared.is_control and judgement.word in ("FASTER", "SLOWER"):
        judgement.word = "UNSURE"
        judgement.warnings.append(
            f"as the control it came out {judgement.speedup.estimate:.3g}× itself: no speedup of this run that is no further "
            "from 1 means anything; run again when the machine is quiet"
        )
    elif judgement.word != speedup_word(judgement.speedup, first.shorter_us):
        judgement.warnings.append(
            f"the control may be off one by a factor of {1 + first.control_apart:.4g}, so nothing within that is called "
            "FASTER or SLOWER"
        )


def published(
    timings: Sequence[Timing], confidence: float, interim_checks: Sequence[int], baseline_kernels: int = UNCOUNTED
) -> Interval:
    """From several workers: the mean over them, with the wider of the within and the between interval. Its low end is that
    of calls that take as much longer than they say as the judge's clock lets them, over the baseline's usual time.
    """
    of_all = _over_all(timings, confidence, interim_checks, baseline_kernels)
    return replace(of_all, lo=of_all.lo / max(timing.times_unvouched * timing.times_slowed for timing in timings))


def _over_all(
    timings: Sequence[Timing], confidence: float, interim_checks: Sequence[int], baseline_kernels: int
) -> Interval:
    """The same of calls that take what they say.

    The one within has the confidence of a single one of the `interim_checks`, at any of which a worker may have ended.
    Over the baselines inside only where all workers agree with the judge's: one that does not, on purpose, would else
    free the low end of the others from what the judge's own says; what that adds to a call is in all of them, and the
    interval holds it, as a single worker's does. Over a baseline's mean of several processes the interval has what that
    is off by too.
    """
    levels = confidence_at(0, interim_checks, confidence), confidence
    outside = _over_workers([timing.log_ratios for timing in timings], *levels)
    if all(timing.is_pooled for timing in timings):
        first = timings[0]
        share = eager_share(first.baseline_time_us, confidence, first.pooled_baseline, baseline_kernels)
        slowest_us = max(timing.baseline_time_us for timing in timings)
        return lowered(with_share(shifted(outside, first.pooled_baseline), share), first.pooled_baseline, slowest_us)
    unseen_us = [timing.shorter_us for timing in timings if timing.unseen_process]
    if unseen_us:
        return unseen(outside, min(unseen_us))
    if not all(timing.agreeing or timing.apart_as_processes for timing in timings):
        return outside
    in_worker = _over_workers([timing.in_worker_log_ratios for timing in timings], *levels)
    return reaching(in_worker, outside) if all(timing.agreeing for timing in timings) else spanning(in_worker, outside)


def _over_workers(ratios: Sequence[Sequence[float]], within_at: float, between_at: float) -> Interval:
    """The speedup from each worker's log-ratios, with intervals of these confidences."""
    within = estimate_log_ratio([each for worker in ratios for each in worker], within_at)
    between = tukey_mclaughlin([trimmed_mean(worker) for worker in ratios], between_at, trim=0.0)
    half = max(within.half_width, between.half_width)
    return Interval(math.exp(between.estimate), math.exp(between.estimate - half), math.exp(between.estimate + half))
