"""Who is judged, and what was found out about it: an entry before, a judgement after."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.attribution.kernel_ownership import Provenance
from harness.judge.extras import Extras
from harness.model.verdict import OK, Verdict
from harness.reference.accuracy.classes import ErrorFigures, classify, worst
from harness.reference.evidence import Evidence
from harness.reference.memory_plan import MemoryPlan
from harness.timing.stats import (
    UNCOUNTED,
    Interval,
    confidence_at,
    eager_share,
    estimate_log_ratio,
    lowered,
    reaching,
    shifted,
    spanning,
    trimmed_mean,
    tukey_mclaughlin,
    unseen,
    with_share,
)
from harness.timing.three_clocks import ThreeClocks
from harness.timing.timings import Timing


@dataclass(frozen=True)
class Prepared:
    """A candidate or baseline ready to be tried. `manifest` names its built extensions by content key, `refused` are
    the keys of those that no compiler takes; it `may_ask` for others as it runs. `origin` is the author's own file,
    where `path` may be a copy with its tuned values. `stand_in_gpu` has the properties of the GPU that a candidate
    hears of which Triton's interpreter runs on the CPU; None for every other. One that is `check_only` is not timed.
    """

    name: str
    path: str
    manifest: Mapping[str, Any]
    extensions: tuple[Path, ...]
    triton_cache: Path | None
    precision_class: str
    language: str
    is_baseline: bool = False
    origin: str | None = None
    refused: frozenset[str] = frozenset()
    may_ask: bool = False
    stand_in_gpu: Mapping[str, Any] | None = None
    check_only: bool = False

    @property
    def is_control(self) -> bool:
        """Whether it is eager itself, in a worker."""
        return self.is_baseline and self.name == "eager"


@dataclass
class Judgement:
    """Everything found out about an entry, as far as it got. `timings` has one entry per worker; `evidence` is on
    the launch that failed; `launched` how many kernels, copies and fills a call is on a GPU, 0 where nobody knows;
    `beside_control` is whether the verdict rests on what the control left behind. `memory` is the plan by which it had
    room, `lacked_room` whether that was still too much for the judge, `peak_bytes` the most that was seen in use.
    `state_moved` is whether a call moved the model's state as the reference's does, None where that moves none;
    `unbuilt` are calls of `load_inline` and `load` that the build had not seen, as the worker told them. `ends_s` is
    when its row's budget ends, by time.monotonic().
    """

    verdict: Verdict = OK
    figures: list[ErrorFigures] = field(default_factory=list)
    truth: str | None = None
    terms: float | None = None
    timings: list[Timing] = field(default_factory=list)
    speedup: Interval | None = None
    word: str | None = None
    provenance: Provenance | None = None
    launched: int = 0
    warnings: list[str] = field(default_factory=list)
    extras: Extras | None = None
    clocks: ThreeClocks | None = None
    evidence: Evidence | None = None
    beside_control: bool = False
    memory: MemoryPlan | None = None
    lacked_room: bool = False
    peak_bytes: int | None = None
    state_moved: bool | None = None
    unbuilt: list[dict[str, Any]] = field(default_factory=list)
    ends_s: float = math.inf
    traceback: str | None = None  # of an exception of this software's own

    @property
    def timing(self) -> Timing | None:
        return self.timings[0] if self.timings else None

    @property
    def precision_class(self) -> str | None:
        """The class that explains all errors: the one that was asked for when all are within its bounds."""
        return classify(self.figures, self.terms) if self.figures else None

    @property
    def worst(self) -> ErrorFigures | None:
        return worst(self.figures) if self.figures else None


def published(
    timings: Sequence[Timing], confidence: float, interim_checks: Sequence[int], baseline_kernels: int = UNCOUNTED
) -> Interval:
    """From several workers: the mean over them, with the wider of the within and the between interval; its low end is that
    of calls that take as much longer than they say as the judge's clock lets them, over a baseline that nobody slows down.
    """
    of_all = _over_all(timings, confidence, interim_checks, baseline_kernels)
    return replace(of_all, lo=of_all.lo / max(timing.times_unseen * timing.times_slowed for timing in timings))


def _over_all(
    timings: Sequence[Timing], confidence: float, interim_checks: Sequence[int], baseline_kernels: int
) -> Interval:
    """The same as they say.

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
