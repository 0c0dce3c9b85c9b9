"""What the charts of one candidate's launches draw: in time, beside the clock, and as a distribution.

Times are in per cent from their own median, so that a candidate and eager, however far apart, show one drift alike.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from harness.report.html.chart_rows import Row, thinned
from harness.report.html.raw_samples import Samples, Worker

_BINS = 40
_WIDEST_SPREADS = 5.0  # bins span this many times the distance from the 10th to the 90th percentile, at most


def drift(samples: Samples, most: int) -> tuple[str, list[Row]]:
    """At most `most` launches of each arm in order, in per cent from its median, as ("seconds" or "rounds", rows)."""
    timed_s = _has_times(samples)
    rows: list[Row] = []
    for arm in ("candidate", "eager"):
        launches = [each for worker in samples.players for each in _arm(worker, arm)]
        if not launches:
            continue
        middle = statistics.median(launches)
        points: list[Row] = []
        start = 0.0
        for worker in samples.players:
            edges = _ends(worker, timed_s) or [float(number + 1) for number in range(len(worker.log_ratios))]
            for at, time_us in _placed(_arm(worker, arm), edges):
                points.append({"at": start + at, "off": 100 * (time_us / middle - 1), "us": time_us, "arm": arm})
            start += edges[-1] if edges else 0.0
        rows += thinned(points, most)
    return ("seconds" if timed_s else "rounds"), rows


def clocks(samples: Samples) -> list[Row]:
    """SM clock, power and temperature of each reading on the axis of `drift`; empty where no clock was recorded."""
    timed_s = _has_times(samples)
    rows: list[Row] = []
    start = 0.0
    for worker in samples.players:
        end = start
        for number, reading in enumerate(worker.readings):
            end = start + (reading.at_s if timed_s else (number + 1) / _per_round(worker, usually=True))
            if reading.sm_mhz is not None:
                rows.append({
                    "at": end, "sm_mhz": reading.sm_mhz, "watts": reading.watts, "celsius": reading.celsius,
                    "throttle": reading.throttle or "none", "kept": reading.kept is not False,
                })
        start = end
    return rows


def against_clock(samples: Samples, most: int) -> list[Row]:
    """The median of the candidate's launches before each reading, in per cent from that of all, with the clock read."""
    launches = [each for worker in samples.players for each in worker.candidate_us]
    rows: list[Row] = []
    for worker in samples.players:
        kept = [reading for reading in worker.readings if reading.kept is not False]
        if not _per_round(worker) or not worker.candidate_us or len(worker.candidate_us) % len(kept):
            continue
        before = len(worker.candidate_us) // len(kept)
        for number, reading in enumerate(kept):
            if reading.sm_mhz is not None:
                time_us = statistics.median(worker.candidate_us[number * before : (number + 1) * before])
                off = 100 * (time_us / statistics.median(launches) - 1)
                rows.append({"sm_mhz": reading.sm_mhz, "off": off, "us": time_us})
    return thinned(rows, most)


def distribution(samples: Samples) -> list[Row]:
    """Shares of the launches in bins of per cent from the arm's own median; the outermost bins hold all beyond."""
    offs: dict[str, list[float]] = {}
    for arm in ("candidate", "eager"):
        launches = [each for worker in samples.players for each in _arm(worker, arm)]
        if len(launches) >= 2 and (middle := statistics.median(launches)) > 0:
            offs[arm] = [100 * (each / middle - 1) for each in launches]
    if "candidate" not in offs:
        return []
    widest = max(_quantile(each, 0.9) - _quantile(each, 0.1) for each in offs.values()) or 0.1
    lo = max(min(min(each) for each in offs.values()), -_WIDEST_SPREADS * widest)
    hi = min(max(max(each) for each in offs.values()), _WIDEST_SPREADS * widest)
    step = (hi - lo) / _BINS or 0.01
    rows = []
    for arm, each in offs.items():
        counts = [0] * _BINS
        for off in each:
            counts[min(_BINS - 1, max(0, int((off - lo) / step)))] += 1
        rows += [{"lo": lo + step * place, "hi": lo + step * (place + 1), "share": 100 * count / len(each),
                  "launches": count, "arm": arm} for place, count in enumerate(counts) if count]
    return rows


def _has_times(samples: Samples) -> bool:
    """Whether the time axis can have seconds: the times of the readings were recorded in every worker."""
    return bool(samples.players) and all(_ends(worker, True) for worker in samples.players)


def _arm(worker: Worker, arm: str) -> tuple[float, ...]:
    return worker.candidate_us if arm == "candidate" else worker.baseline_us


def _per_round(worker: Worker, *, usually: bool = False) -> int:
    """Readings of each kept round: one, or in older files two; where that cannot be told 0, or what is `usually` so."""
    rounds, kept = len(worker.log_ratios), sum(reading.kept is not False for reading in worker.readings)
    if rounds and kept in (rounds, 2 * rounds):
        return kept // rounds
    return 0 if not usually else 2 if any(reading.kept is None for reading in worker.readings) else 1


def _ends(worker: Worker, timed_s: bool) -> list[float]:
    """Where each kept round ended: in seconds, or in rounds from the start; empty where that cannot be told."""
    per_round = _per_round(worker)
    if not per_round:
        return []
    places = [number for number, reading in enumerate(worker.readings) if reading.kept is not False]
    last = places[per_round - 1 :: per_round]
    if not timed_s:
        return [(number + 1) / per_round for number in last]
    is_known = all(reading.at_s is not None for reading in worker.readings)
    return [worker.readings[number].at_s for number in last] if is_known else []


def _placed(launches: Sequence[float], edges: Sequence[float]) -> list[tuple[float, float]]:
    """The launches spread over the rounds that they were made in, which end at `edges`."""
    if not edges or len(launches) % len(edges):
        return [(float(number), each) for number, each in enumerate(launches)]
    per_round = len(launches) // len(edges)
    placed = []
    for number, each in enumerate(launches):
        index, within = divmod(number, per_round)
        before = edges[index - 1] if index else 0.0
        placed.append((before + (edges[index] - before) * (within + 0.5) / per_round, each))
    return placed


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
