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


def drift(samples: Samples, most: int) -> list[Row]:
    """At most `most` launches of each arm in order, in per cent from its median, by the seconds since the first round;
    none of a worker whose readings lack their times.
    """
    rows: list[Row] = []
    for arm in ("candidate", "eager"):
        launches = [each for worker in samples.players for each in _arm(worker, arm)]
        if not launches:
            continue
        middle = statistics.median(launches)
        points: list[Row] = []
        start = 0.0
        for worker in samples.players:
            ends = _ends(worker)
            for at, time_us in _placed(_arm(worker, arm), ends):
                points.append({"at": start + at, "off": 100 * (time_us / middle - 1), "us": time_us, "arm": arm})
            start += ends[-1] if ends else 0.0
        rows += thinned(points, most)
    return rows


def clocks(samples: Samples) -> list[Row]:
    """SM clock, power and temperature of each reading on the axis of `drift`; empty where no clock was recorded."""
    rows: list[Row] = []
    start = 0.0
    for worker in samples.players:
        end = start
        for reading in worker.readings if _ends(worker) else ():
            end = start + reading.at_s
            if reading.sm_mhz is not None:
                rows.append({
                    "at": end, "sm_mhz": reading.sm_mhz, "watts": reading.watts, "celsius": reading.celsius,
                    "throttle": reading.throttle or "none", "kept": reading.kept,
                })
        start = end
    return rows


def against_clock(samples: Samples, most: int) -> list[Row]:
    """The median of the candidate's launches before each reading, in per cent from that of all, with the clock read."""
    launches = [each for worker in samples.players for each in worker.candidate_us]
    rows: list[Row] = []
    for worker in samples.players:
        kept = [reading for reading in worker.readings if reading.kept]
        if not _ends(worker) or not worker.candidate_us or len(worker.candidate_us) % len(kept):
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


def _arm(worker: Worker, arm: str) -> tuple[float, ...]:
    return worker.candidate_us if arm == "candidate" else worker.baseline_us


def _ends(worker: Worker) -> list[float]:
    """When each kept round ended, in seconds; empty where a time is missing. Of two readings in a round, as files up to
    November 2026 have them, it is the second.
    """
    rounds = len(worker.log_ratios)
    kept_s = [reading.at_s for reading in worker.readings if reading.kept]
    is_timed = all(reading.at_s is not None for reading in worker.readings)
    if not is_timed or not rounds or len(kept_s) not in (rounds, 2 * rounds):
        return []
    per_round = len(kept_s) // rounds
    return kept_s[per_round - 1 :: per_round]


def _placed(launches: Sequence[float], ends: Sequence[float]) -> list[tuple[float, float]]:
    """The launches spread over the rounds that they were made in; none where those are not known."""
    if not ends or len(launches) % len(ends):
        return []
    per_round = len(launches) // len(ends)
    placed = []
    for number, each in enumerate(launches):
        index, within = divmod(number, per_round)
        before = ends[index - 1] if index else 0.0
        placed.append((before + (ends[index] - before) * (within + 0.5) / per_round, each))
    return placed


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
