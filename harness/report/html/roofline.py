"""The roofline of a device: its roofs, every timed entry below them, and where a name finds room beside its point.

Roofs are the copy bandwidth measured before the run and datasheet peaks. Operations and bytes are the problem's useful
ones, so that all entries of a problem stand above each other (Williams, Waterman & Patterson 2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.model.errors import InputError
from harness.model.peaks import load_peaks
from harness.model.physics import Peaks
from harness.report import terminal
from harness.report.html.cases import Case, Entry, Problem
from harness.report.html.chart_rows import Row
from harness.results.ranking import TIMED
from harness.results.record import Record

_LABEL_GAP = 0.045  # of the height of the plot: names nearer than that would lie on each other
MEMORY_ROOF = "copy bandwidth, measured"


def rooflines(problems: Sequence[Problem]) -> dict[str, list[Row]]:
    """Rows for each device that has a timed entry of known work, by the device's name."""
    placed: dict[str, list[tuple[Problem, Case, Entry]]] = {}
    everything = ((problem, case, entry) for problem in problems for case in problem.cases for entry in case.entries)
    for problem, case, entry in everything:
        if _has_place(entry.record):
            placed.setdefault(case.device, []).append((problem, case, entry))
    return {device: _rows(device, entries) for device, entries in placed.items()}


def _has_place(record: Record) -> bool:
    work = record.useful_flops and record.useful_bytes and record.time_us
    return record.status in TIMED and bool(work) and record.useful_flops > 0 and record.useful_bytes > 0


def _rows(device: str, placed: Sequence[tuple[Problem, Case, Entry]]) -> list[Row]:
    records = [entry.record for _, _, entry in placed]
    newest = max(records, key=lambda record: record.utc)
    intensities = [record.useful_flops / record.useful_bytes for record in records]
    peaks = _peaks(device) if newest.device_kind == "cuda" else None
    flat = [] if peaks is None else [(name, rate) for name, rate in (
        ("fp32 units, datasheet", peaks.fp32_tflops), ("TF32 tensor cores, datasheet", peaks.tensor_tf32_tflops),
        ("16-bit tensor cores, datasheet", peaks.tensor16_tflops),
    ) if rate]
    bandwidth = newest.canary_gbps or (peaks.bandwidth_gbytes_s if peaks else None)
    name = MEMORY_ROOF if newest.canary_gbps else "memory bandwidth, datasheet"
    ridges = [1e3 * rate / bandwidth for _, rate in flat] if bandwidth else []
    left, right = min([*intensities, *ridges]) / 4, max([*intensities, *ridges]) * 8
    rows: list[Row] = []
    if bandwidth:
        end = max(ridges) if ridges else right
        rows += _roof(name, (left, left * bandwidth / 1e3), (end, end * bandwidth / 1e3))
    for (roof, rate), ridge in zip(flat, ridges or [left] * len(flat)):
        rows += _roof(roof, (ridge, rate), (right, rate))
    points = [_point(problem, case, entry) for problem, case, entry in placed]
    heights = [row["y"] for row in [*rows, *points]]
    return rows + _with_labels(points, math.log(max(heights) / min(heights)) if len(heights) > 1 else 1.0)


def _peaks(device: str) -> Peaks | None:
    try:
        return load_peaks(device)
    except InputError:
        return None  # somebody is editing the table of GPUs; the report is not the place to say so


def _roof(name: str, start: tuple[float, float], end: tuple[float, float]) -> list[Row]:
    return [{"kind": "roof", "name": name, "x": x, "y": y} for x, y in (start, end)]


def _point(problem: Problem, case: Case, entry: Entry) -> Row:
    record = entry.record
    title = f"{problem.name} · {case.sizes}" if case.sizes else problem.name
    return {
        "kind": "point", "name": entry.label, "problem": title,
        "x": record.useful_flops / record.useful_bytes, "y": record.useful_flops / (record.time_us * 1e6),
        "role": record.role, "percent": record.percent_of_sol, "text": terminal.speedup_text(record),
    }


def _with_labels(points: list[Row], log_height: float) -> list[Row]:
    """The points, and for each a label pushed away from its neighbours: to the left of the first problem's points."""
    rows: list[Row] = list(points)
    columns = sorted({row["x"] for row in points})
    gap = math.exp(_LABEL_GAP * log_height)
    for number, intensity in enumerate(columns):
        column = sorted((row for row in points if row["x"] == intensity), key=lambda row: row["y"])
        side = "left" if number == 0 and len(columns) > 1 else "right"
        reach = 1 / 1.35 if side == "left" else 1.35
        for row, y in zip(column, _spread([row["y"] for row in column], gap)):
            ends = {"x": intensity, "y": row["y"], "x2": intensity * reach, "y2": y}
            rows.append({"kind": "label", "side": side, "name": row["name"], **ends})
    return rows


def _spread(heights: Sequence[float], gap: float) -> list[float]:
    """The heights, ascending, moved until each is at least `gap` times the one before; their middle stays in place."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] * gap) if moved else height)
    shift = math.exp(sum(math.log(new / old) for new, old in zip(moved, heights)) / len(moved)) if moved else 1.0
    return [height / shift for height in moved]
