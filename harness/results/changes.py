"""What became of each candidate between two runs on one device: the change with its interval, a word, and the reason.

Speedups correct themselves: candidate and baseline took turns in the same rounds, so that a slower clock or a busier
machine falls on both. Only where the baseline itself is another (another torch or CUDA) are the candidate's own times
set against each other, corrected by the canaries. The numbers are `timing.stats`'; what is shown where is `report`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.model.verdict import Status
from harness.results.joined_runs import Case, Joined, Row, is_forcible
from harness.results.record import Record
from harness.timing.stats.words import margin, word
from harness.timing.stats.difference import change as change_of, geometric_mean
from harness.timing.stats.trimmed_mean import Interval

BASELINE_SOFTWARE = ("torch", "cuda")  # another of these brings another eager
CANARY_MARGIN = 0.01  # two canaries within two minutes on one H200: 4180 and 4212 GB/s, 0.8 % apart
NOT_IN_BOTH = "not in both runs"
DRIFT = 0.01  # a canary that moved by more than it scatters by itself
WRONG = frozenset({
    Status.INCORRECT, Status.IMPRECISE, Status.REJECTED, Status.BUILD_FAILED, Status.CRASHED, Status.TIMED_OUT,
    Status.OUT_OF_MEMORY,
})


@dataclass(frozen=True)
class Change:
    """One candidate in two runs on one device.

    `verdict` is FASTER, SLOWER, SAME or UNSURE, LOST when it was ok and is wrong now, WON for the reverse, and "" when
    there is nothing to say. `ratio` is how many times as fast it is now, None without figures; `margin` what it is
    held to, from its "duration", the "control" or the "canary"; `basis` "speedup" or "time". `time_ratio` is the new
    raw time over the old; `drift` what the canary says a time should have become by itself (1.02: 2 % longer), None
    without one. `too_wide` names whose interval alone is beyond the margin.
    """

    verdict: str
    reason: str
    ratio: Interval | None = None
    margin: float | None = None
    basis: str = "speedup"
    margin_from: str = "duration"
    time_ratio: float | None = None
    drift: float | None = None
    too_wide: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """Two runs on one device, in one case: `changes` goes with the case's rows. `refused` names the methods that differ
    (then nothing is compared); `mean` is over the candidates that are ok in both, `mean_of` of them.
    """

    case: Case
    reference: int
    run: int
    changes: tuple[tuple[Row, Change], ...]
    refused: tuple[tuple[str, str, str], ...] = ()
    mean: Interval | None = None
    mean_of: int = 0


def pairs_of(joined: Joined, *, force: bool = False) -> list[Pair]:
    """Each run against the first one on the same device, case by case."""
    pairs = []
    for case in joined.cases:
        first: dict[tuple[object, ...], int] = {}
        for run in case.runs:
            reference = first.setdefault(joined.runs[run].device, run)
            if reference != run:
                pairs.append(_pair(case, reference, run, force))
    return pairs


def _pair(case: Case, reference: int, run: int, force: bool) -> Pair:
    mixed = tuple(case.mixed(reference, run))
    if mixed and not (force and is_forcible(mixed)):
        return Pair(case, reference, run, (), mixed)
    controls = [case.controls.get(reference), case.controls.get(run)]
    changes = tuple((row, change_between(row.records[reference], row.records[run], controls)) for row in case.rows)
    ratios = [each.ratio for row, each in changes if each.ratio is not None and not row.is_baseline]
    return Pair(case, reference, run, changes, mixed, geometric_mean(ratios) if ratios else None, len(ratios))


def change_between(before: Record | None, now: Record | None, controls: Iterable[Record | None] = ()) -> Change:
    """How a candidate changed; `controls` are the rows of eager against itself in the same two runs."""
    if before is None or now is None:
        return Change("", NOT_IN_BOTH)
    if before.status is not Status.OK or now.status is not Status.OK:
        return _without_figures(before, now)
    for name in ("launch_hidden", "precision_class", "truth"):
        a, b = getattr(before, name), getattr(now, name)
        if None not in (a, b) and a != b:
            return Change("UNSURE", f"{name} is {_shown(a)} in the older run and {_shown(b)} in the newer one")
    speedups = [speedup_interval(record) for record in (before, now)]
    if None in speedups:
        return Change("UNSURE", f"no interval in the {'older' if speedups[0] is None else 'newer'} run")
    return _measured(before, now, speedups, [each for each in controls if each is not None])


def _measured(before: Record, now: Record, speedups: list[Interval], controls: list[Record]) -> Change:
    drift = drift_of(before, now)
    time_ratio = now.time_us / before.time_us if before.time_us and now.time_us else None
    m, source = _margin(before, now, controls)
    software = [(getattr(before, name), getattr(now, name)) for name in BASELINE_SOFTWARE]
    if all(None in (a, b) or a == b for a, b in software):
        ratio, basis = change_of(*speedups), "speedup"
    elif time_ratio is None or drift is None:
        reason = "the baseline's software differs, and without a canary in both runs times say nothing"
        return Change("UNSURE", reason, time_ratio=time_ratio, basis="time")
    else:
        rates = [_scaled(each, rate) for each, rate in zip(speedups, (1 / before.time_us, drift / now.time_us))]
        ratio, basis = change_of(*rates), "time"
        if m < CANARY_MARGIN:
            m, source = CANARY_MARGIN, "canary"
    wide = tuple(
        name for name, each in zip(("older", "newer"), speedups) if (each.hi - each.lo) / (2 * each.estimate) > m
    )
    verdict = word(ratio, m)
    return Change(verdict, _reason(ratio, m, verdict), ratio, m, basis, source, time_ratio, drift, wide)


def _margin(before: Record, now: Record, controls: list[Record]) -> tuple[float, str]:
    """The margin of the duration class, or as far as eager against itself was from one, if that is more: an interval
    knows the scatter within its own processes, the control's row what two processes of one thing made of it.
    """
    m = margin(min(record.time_us or float("inf") for record in (before, now)))
    itself = [each.speedup if each.baseline_hash is None else each.eager_speedup for each in controls]
    off = max((abs(speedup - 1) for speedup in itself if speedup), default=0.0)
    return (off, "control") if off > m else (m, "duration")


def drift_of(before: Record, now: Record) -> float | None:
    """What the machine alone would have made of the old time: by the copy bandwidth where memory is the limit, by the
    multiply-add rate, or else the SM clock, where arithmetic is. None where it was not measured in both.
    """
    for name in {"memory": ("canary_gbps",), "compute": ("canary_tflops", "sm_mhz")}.get(before.bound_by or "", ()):
        a, b = getattr(before, name), getattr(now, name)
        if a and b:
            return a / b
    return None


def _without_figures(before: Record, now: Record) -> Change:
    if before.status is Status.OK and now.status in WRONG:
        return Change("LOST", f"ok in the older run, {now.status.value} in the newer one")
    if now.status is Status.OK and before.status in WRONG:
        return Change("WON", f"{before.status.value} in the older run, ok in the newer one")
    if Status.UNSURE in (before.status, now.status) and {before.status, now.status} <= {Status.OK, Status.UNSURE}:
        return Change("UNSURE", f"{'older' if before.status is Status.UNSURE else 'newer'} run could not measure it")
    both = before.status is now.status
    return Change("", f"{now.status.value} in both" if both else f"{before.status.value}, then {now.status.value}")


def _reason(ratio: Interval, m: float, verdict: str) -> str:
    where = {"FASTER": "above +", "SLOWER": "below −", "SAME": "within ±"}.get(verdict)
    if where is not None:
        return f"all {where}{100 * m:.2g} %"
    ends = [end for end, crossed in (("−", ratio.lo < 1 - m), ("+", ratio.hi > 1 + m)) if crossed]
    return f"across {' and '.join(f'{end}{100 * m:.2g} %' for end in ends)}"


def speedup_interval(record: Record) -> Interval | None:
    """The speedup with its interval; None where one of the three is missing."""
    if not record.speedup or not record.speedup_lo or not record.speedup_hi:
        return None
    lo, hi = min(record.speedup_lo, record.speedup), max(record.speedup_hi, record.speedup)
    return Interval(record.speedup, lo, hi) if lo > 0 else None


def _scaled(interval: Interval, estimate: float) -> Interval:
    """The relative width of `interval` about another estimate."""
    factor = estimate / interval.estimate
    return Interval(estimate, interval.lo * factor, interval.hi * factor)


def _shown(value: object) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
