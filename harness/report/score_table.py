"""KernelBench's scores as a table and as JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.model.spelling import listed
from harness.report import terminal
from harness.report.table import Column, table_text
from harness.results.scores import THRESHOLDS, DeviceScores, Scores


def score_text(devices: Sequence[DeviceScores], width: int | None = 140) -> str:
    """A table for each device, and below it what was not solved and what was left out."""
    blocks = []
    names = Counter(each.device_name for each in devices)
    for each in devices:
        both = [each.of_problems, each.of_candidates]
        columns = [
            Column("", "left", ["best of each problem", "every candidate"]),
            Column("n", "right", [str(scores.n) for scores in both]),
            Column("correct", "right", [_share(scores.correctness_rate) for scores in both]),
            *(Column(f"fast_{p:g}", "right", [_share(scores.fast[place]) for scores in both])
              for place, p in enumerate(THRESHOLDS)),
            Column("geometric mean speedup", "left", [terminal.interval_text(scores.mean) for scores in both]),
        ]
        card = f" ({each.uuid[:12]})" if names[each.device_name] > 1 and each.uuid else ""
        over = listed(each.over)
        title = f"KernelBench scores · {each.device_name}{card}{'' if over == 'eager' else f' · over {over}'}"
        lines = [title, "", table_text(columns), ""]
        remarks = [f"fast_p: share of n that is correct with a speedup over {over} greater than p; the mean is over "
                   "those that are correct", *_remarks(each)]
        blocks.append("\n".join([*lines, *(line for text in remarks for line in terminal.indented(text, width))]))
    return "\n\n".join(blocks)


def score_json(devices: Sequence[DeviceScores]) -> list[dict[str, Any]]:
    """The scores under stable keys; shares from 0 to 1, null where there is nothing to divide by."""
    return [{
        "device_name": each.device_name, "uuid": each.uuid, "best_of_each_problem": _as_json(each.of_problems),
        "every_candidate": _as_json(each.of_candidates), "unsolved": list(each.unsolved),
        "left_out": list(each.left_out), "candidates_left_out": each.candidates_left_out, "unshown": list(each.unshown),
        "baselines": list(each.over), "without_baseline": list(each.without_baseline),
    } for each in devices]


def _as_json(scores: Scores) -> dict[str, Any]:
    mean = scores.mean
    return {
        "n": scores.n, "correct": scores.correct, "correctness_rate": _number(scores.correctness_rate),
        "fast_p": {f"{p:g}": _number(share) for p, share in zip(THRESHOLDS, scores.fast)},
        "open": {f"{p:g}": count for p, count in zip(THRESHOLDS, scores.open)},
        "geometric_mean_speedup": mean and mean.estimate, "geometric_mean_speedup_lo": mean and mean.lo,
        "geometric_mean_speedup_hi": mean and mean.hi, "timed": scores.timed,
    }


def _remarks(each: DeviceScores) -> list[str]:
    undecided = [f"{count} at {p:g}" for p, count in zip(THRESHOLDS, each.of_candidates.open) if count]
    remarks = ["speedups whose interval holds the threshold, or that are UNSURE at 1, so that another run may count "
               f"them otherwise: {', '.join(undecided)}"] if undecided else []
    remarks += [f"{what}: {listed(problems)}" for what, problems in (
        ("without a correct candidate", each.unsolved),
        ("left out, for they cannot show what a candidate computes", each.unshown),
        ("left out, for the baseline that they are over is not ok", each.without_baseline),
        ("left out, for nothing here could run their candidates", each.left_out),
    ) if problems]
    if each.candidates_left_out and not each.left_out:
        one = each.candidates_left_out == 1
        remarks.append("left out, for nothing here could run it: 1 candidate" if one else
                       f"left out, for nothing here could run them: {each.candidates_left_out} candidates")
    return remarks


def _share(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share:.1f} %"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
