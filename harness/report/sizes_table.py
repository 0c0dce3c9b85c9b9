"""Several sizes in one run: each candidate's speedup at each, and the geometric mean of what is ok at every size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.model.verdict import Status
from harness.report import terminal
from harness.report.table import Column, table_text
from harness.report.terminal import paint
from harness.results.changes import speedup_interval
from harness.results.own_baseline import is_own_baseline
from harness.results.ranking import grouped
from harness.results.record import Record
from harness.timing.stats.difference import geometric_mean
from harness.timing.stats.trimmed_mean import Interval


@dataclass(frozen=True)
class Mean:
    """A candidate or baseline with its record at each of several sizes, and the geometric mean of its speedups. `mean`
    is None where it is not ok, or has no interval, at one of them: `missing` says at which, and what it is.
    """

    name: str
    role: str
    records: tuple[Record | None, ...]
    mean: Interval | None
    missing: str | None


@dataclass(frozen=True)
class Together:
    """One problem at several `sizes`, and the means of all that was judged, the largest first; speedups `over` what."""

    problem: str
    sizes: tuple[str, ...]
    means: tuple[Mean, ...]
    over: str = "eager"


def together(records: Iterable[Record]) -> list[Together]:
    """Each problem (dtype, mode) that has rows at several sizes. Of several GPUs' rows of one name the first counts."""
    problems: dict[tuple[str | None, ...], list[list[Record]]] = {}
    for group in grouped(records):
        first = group[0]
        problems.setdefault((first.problem, first.dtype, first.mode), []).append(group)
    summaries = []
    for groups in problems.values():
        if len(groups) > 1:
            names = dict.fromkeys(
                (record.role, record.candidate) for group in groups for record in group if not is_own_baseline(record)
            )
            means = [_mean(role, name, groups) for role, name in names]
            means.sort(key=lambda each: (each.mean is None, -each.mean.estimate if each.mean else 0.0, each.name))
            sizes = tuple(group[0].sizes for group in groups)
            over = next((each.baseline for group in groups for each in group if each.baseline), "eager")
            summaries.append(Together(groups[0][0].problem, sizes, tuple(means), over))
    return summaries


def _mean(role: str, name: str, groups: Sequence[Sequence[Record]]) -> Mean:
    rows = tuple(next((row for row in group if (row.role, row.candidate) == (role, name)), None) for group in groups)
    speedups = []
    for group, record in zip(groups, rows):
        ratio = speedup_interval(record) if record is not None and record.status is Status.OK else None
        if ratio is None:
            what = "not judged" if record is None else record.status.value
            return Mean(name, role, rows, None, f"{what} at {group[0].sizes}")
        speedups.append(ratio)
    return Mean(name, role, rows, geometric_mean(speedups), None)


def sizes_text(records: Iterable[Record], *, width: int | None = None, color: bool = False) -> list[str]:
    """A block of text for each problem at several sizes."""
    return [_block(each, width, color) for each in together(records)]


def _block(summary: Together, width: int | None, color: bool) -> str:
    shown = [each for each in summary.means if each.mean is not None]
    lines = [paint(f"{summary.problem} · {len(summary.sizes)} sizes together", "bold", color), ""]
    if shown:
        columns = [
            Column("candidate", "left", [terminal.shortened(each.name, 32) for each in shown]),
            Column("geometric mean", "left", [terminal.interval_text(each.mean) for each in shown]),
            *(Column(sizes, "right", [terminal.ratio_text(each.records[place].speedup) for each in shown])
              for place, sizes in enumerate(summary.sizes)),
        ]
        lines += [table_text(columns), ""]
    mean = "their geometric mean, with an interval from theirs, of what is ok at every size"
    legend = f"speedups over {summary.over}; {mean}"
    lines += [paint(line, "dim", color) for line in terminal.indented(legend, width)]
    left_out = [f"{each.name}: {each.missing}" for each in summary.means if each.mean is None]
    lines += [line for text in left_out for line in terminal.indented(text, width)]
    return "\n".join(lines)


def sizes_json(records: Iterable[Record]) -> list[dict[str, object]]:
    """The means under stable keys; null where something is missing."""
    return [{
        "problem": each.problem, "sizes": list(each.sizes), "baseline": each.over,
        "means": [{
            "candidate": mean.name, "role": mean.role, "speedup": mean.mean and mean.mean.estimate,
            "speedup_lo": mean.mean and mean.mean.lo, "speedup_hi": mean.mean and mean.mean.hi, "missing": mean.missing,
        } for mean in each.means],
    } for each in together(records)]
