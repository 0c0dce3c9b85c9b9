"""The rows that each chart draws, as plain dictionaries computed from records and samples; nothing is drawn here.

Times of single launches are shown in per cent from their own median, so that a candidate and eager, however far apart,
show the same drift on the same scale.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from harness.records.ranking import TIMED
from harness.records.schema import Record
from harness.report import terminal
from harness.report.html.cases import Case, Entry, Problem
from harness.report.html.samples import FamilyError, Player, Samples

Row = dict[str, object]
_BINS = 40
_WIDE = 0.025  # of the axis: an interval longer than that reaches beyond its point
_WIDEST_SPREADS = 5.0  # bins span this many times the distance from the 10th to the 90th percentile, at most


def speedups(case: Case) -> list[Row]:
    """One row per timed entry: estimate and interval over eager."""
    timed = [entry for entry in case.entries if has_speedup(entry.record)]
    ends = [end for entry in timed for end in _interval(entry.record)]
    return [_speedup_row(entry, _side(entry.record, ends)) for entry in timed]


def has_speedup(record: Record) -> bool:
    return record.status in TIMED and record.speedup is not None and record.speedup > 0


def _speedup_row(entry: Entry, side: str) -> Row:
    record = entry.record
    lo, hi = _interval(record)
    return {
        "name": entry.label, "x": record.speedup, "lo": lo, "hi": hi, "call": record.call or "none",
        "role": record.role, "text": interval_text(record), "label": interval_text(record), "side": side,
    }


def _interval(record: Record) -> tuple[float, float]:
    """The ends of the interval; the estimate twice where there is none, or one that a logarithm cannot take."""
    lo, hi = record.speedup_lo, record.speedup_hi
    return (record.speedup, record.speedup) if lo is None or hi is None or lo <= 0 else (lo, hi)


def interval_text(record: Record) -> str:
    return terminal.ratio_text(record.speedup, record.speedup_lo, record.speedup_hi)


def _side(record: Record, ends: Sequence[float]) -> str:
    """Where a label has room on a logarithmic axis of all `ends`: beside the point, to its right in the left half.

    Above it when its own interval would run through the label.
    """
    least, most = math.log(min(*ends, 1.0)), math.log(max(*ends, 1.0))
    lo, hi = _interval(record)
    if most == least:
        return "right"
    if math.log(hi / lo) > _WIDE * (most - least):
        return "above"
    return "right" if (math.log(record.speedup) - least) / (most - least) < 0.5 else "left"


def beside(problem: Problem) -> list[Row]:
    """Every speedup of every case of the problem, for several devices side by side."""
    rows = []
    for case in problem.cases:
        for entry in case.entries:
            if has_speedup(entry.record) and entry.record.candidate != entry.record.baseline:
                row = _speedup_row(entry, "right")
                rows.append({**{key: row[key] for key in ("name", "x", "lo", "hi", "text")}, "device": place(case)})
    return rows


def place(case: Case) -> str:
    return f"{case.device} · {case.sizes}" if case.sizes else case.device


def drift(samples: Samples, most: int) -> tuple[str, list[Row]]:
    """Single launches in order, in per cent from their arm's median, as ("seconds" or "rounds", rows).

    At most `most` launches of each arm are kept, evenly spaced; what is on the time axis depends on whether the
    times of the readings were recorded.
    """
    timed_s = bool(samples.players) and all(_pair_positions(player, True) for player in samples.players)
    rows: list[Row] = []
    for arm in ("candidate", "eager"):
        launches = [each for player in samples.players for each in _arm(player, arm)]
        if not launches:
            continue
        middle = statistics.median(launches)
        points: list[Row] = []
        start = 0.0
        for player in samples.players:
            edges = _pair_positions(player, timed_s) or _plain_positions(player)
            for at, time_us in _placed(_arm(player, arm), edges):
                points.append({"at": start + at, "off": 100 * (time_us / middle - 1), "us": time_us, "arm": arm})
            start += edges[-1] if edges else 0.0
        rows += thinned(points, most)
    return ("seconds" if timed_s else "rounds"), rows


def clocks(samples: Samples) -> list[Row]:
    """SM clock, power and temperature of each reading on the axis of `drift`; empty where no clock was recorded."""
    timed_s = bool(samples.players) and all(_pair_positions(player, True) for player in samples.players)
    rows: list[Row] = []
    start = 0.0
    for player in samples.players:
        end = start
        for number, reading in enumerate(player.readings):
            end = start + (reading.at_s if timed_s else (number + 1) / 2)
            if reading.sm_mhz is not None:
                rows.append({
                    "at": end, "sm_mhz": reading.sm_mhz, "watts": reading.watts, "celsius": reading.celsius,
                    "throttle": reading.throttle or "none", "kept": reading.kept is not False,
                })
        start = end
    return rows


def against_clock(samples: Samples, most: int) -> list[Row]:
    """Median of each pair's candidate launches, in per cent from the median of all, with the clock read after them."""
    launches = [each for player in samples.players for each in player.candidate_us]
    rows: list[Row] = []
    for player in samples.players:
        kept = [reading for reading in player.readings if reading.kept is not False]
        per_pair = _per_pair(player.candidate_us, player)
        if per_pair is None or len(kept) != 2 * len(player.log_ratios):
            continue
        for number, reading in enumerate(kept):
            if reading.sm_mhz is not None:
                time_us = statistics.median(player.candidate_us[number * per_pair:(number + 1) * per_pair])
                off = 100 * (time_us / statistics.median(launches) - 1)
                rows.append({"sm_mhz": reading.sm_mhz, "off": off, "us": time_us})
    return thinned(rows, most)


def distribution(samples: Samples) -> list[Row]:
    """Shares of the launches in bins of per cent from the arm's own median; the outermost bins hold all beyond."""
    offs: dict[str, list[float]] = {}
    for arm in ("candidate", "eager"):
        launches = [each for player in samples.players for each in _arm(player, arm)]
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
        rows += [
            {"lo": lo + step * place, "hi": lo + step * (place + 1), "share": 100 * count / len(each),
             "launches": count, "arm": arm}
            for place, count in enumerate(counts) if count
        ]
    return rows


def rounds(entry: Entry, most: int) -> list[Row]:
    """The speedup of each round, and one row of kind "interval" with what they were estimated at."""
    ratios = [ratio for player in entry.samples.players for ratio in player.log_ratios if abs(ratio) < 50]
    rows: list[Row] = [{"kind": "round", "round": number, "x": math.exp(ratio)} for number, ratio in enumerate(ratios, 1)]
    if rows and entry.record.speedup is not None:
        lo, hi = _interval(entry.record)
        rows = [*thinned(rows, most), {"kind": "interval", "x": entry.record.speedup, "lo": lo, "hi": hi}]
    return rows


def errors(samples: Samples) -> list[Row]:
    """For each family the input set that came nearest to its bound: the error, eager's, and what was allowed."""
    rows = []
    for each in worst_by_family(samples.errors):
        for what, value in (("candidate", each.max_u), ("eager", each.eager_max_u), ("allowed", each.allowed_max_u)):
            if value is not None:
                rows.append({"family": each.family, "what": what, "u": value, "sizes": each.sizes})
    return rows


def worst_by_family(found: Iterable[FamilyError]) -> list[FamilyError]:
    worst: dict[str, FamilyError] = {}
    for each in found:
        if each.family not in worst or each.share > worst[each.family].share:
            worst[each.family] = each
    return list(worst.values())


def history(entry: Entry) -> list[Row]:
    """The speedups of an entry over its runs; each version of its source is numbered, from the oldest."""
    versions = list(dict.fromkeys(record.source_hash for record in entry.history))
    rows = []
    for record in entry.history:
        if has_speedup(record):
            lo, hi = _interval(record)
            rows.append({
                "utc": record.utc, "run": terminal.date_text(record.utc), "x": record.speedup, "lo": lo, "hi": hi, "text": interval_text(record),
                "version": f"source {versions.index(record.source_hash) + 1}",
            })
    return rows


def thinned(rows: list[Row], most: int) -> list[Row]:
    """At most `most` of the rows, evenly spaced; the first and the last stay."""
    if len(rows) <= most:
        return rows
    if most < 2:
        return []
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]


def _arm(player: Player, arm: str) -> tuple[float, ...]:
    return player.candidate_us if arm == "candidate" else player.baseline_us


def _per_pair(launches: Sequence[float], player: Player) -> int | None:
    """Launches of one arm in one of a round's two pairs; None where they do not come out even."""
    pairs = 2 * len(player.log_ratios)
    return len(launches) // pairs if pairs and launches and len(launches) % pairs == 0 else None


def _pair_positions(player: Player, timed_s: bool) -> list[float]:
    """Where each kept pair ended: in seconds, or in rounds from the start; empty where that cannot be told."""
    places = [number for number, reading in enumerate(player.readings) if reading.kept is not False]
    if len(places) != 2 * len(player.log_ratios) or not places:
        return []
    if not timed_s:
        return [(number + 1) / 2 for number in places]
    times_s = [player.readings[number].at_s for number in places]
    return [] if None in times_s else times_s


def _plain_positions(player: Player) -> list[float]:
    return [(number + 1) / 2 for number in range(2 * len(player.log_ratios))]


def _placed(launches: Sequence[float], edges: Sequence[float]) -> list[tuple[float, float]]:
    """The launches spread over the pairs that they were made in, which end at `edges`."""
    if not edges or len(launches) % len(edges):
        return [(float(number), each) for number, each in enumerate(launches)]
    per_pair = len(launches) // len(edges)
    placed = []
    for number, each in enumerate(launches):
        pair, within = divmod(number, per_pair)
        before = edges[pair - 1] if pair else 0.0
        placed.append((before + (edges[pair] - before) * (within + 0.5) / per_pair, each))
    return placed


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
