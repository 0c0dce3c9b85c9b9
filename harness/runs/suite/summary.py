"""One summary for many problems: a line for each, then KernelBench's scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model.files.text_files import shown
from harness.model.spelling import listed
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.score_table import score_json, score_text
from harness.report.table import Column, table_text
from harness.results.record import Record
from harness.results.result_files import ResultFile
from harness.results.scores import DeviceScores, scores_of

_LONGEST_NAME = 44


@dataclass(frozen=True)
class Outcome:
    """What became of one problem: its records, or why there are none; `kept` candidates have an earlier run's."""

    path: Path
    name: str
    records: tuple[Record, ...] = ()
    csv_path: Path | None = None
    fault: str | None = None
    without_candidate: bool = False
    kept: int = 0


def scores(outcomes: Sequence[Outcome]) -> list[DeviceScores]:
    """KernelBench's scores; a problem without a candidate counts as not solved, one that failed to load not at all."""
    runs = [ResultFile(each.csv_path, each.records) for each in outcomes if each.records and each.csv_path]
    return scores_of(runs, [each.name for each in outcomes if each.without_candidate])


def summary_text(outcomes: Sequence[Outcome], width: int | None) -> str:
    """The table of problems, the faults in words, the scores, and where the results are."""
    own = [[record for record in each.records if record.role == "candidate"] for each in outcomes]
    best = [max((record for record in records if record.status is Status.OK and record.speedup),
                key=lambda record: record.speedup, default=None) for records in own]
    is_eager = all(each is None or each.baseline_hash is None for each in best)
    columns = [
        Column("problem", "left", [terminal.shortened(each.name, _LONGEST_NAME) for each in outcomes]),
        Column("candidates", "left", [_counts(each, records) for each, records in zip(outcomes, own)]),
        Column("reused", "right", [str(each.kept or "") for each in outcomes]),
        Column("best", "left", ["" if each is None else terminal.shortened(each.candidate, 32) for each in best]),
        Column("speedup over eager" if is_eager else "speedup", "left", [
            "" if each is None else terminal.speedup_text(each)
            + ("" if is_eager else f" over {each.baseline}") for each in best
        ]),
    ]
    columns = [each for each in columns if any(each.cells)]
    lines = [f"{len(outcomes)} {'problem' if len(outcomes) == 1 else 'problems'}", "", table_text(columns)]
    failed = [each for each in outcomes if each.fault]
    if failed:
        lines += ["", *(line for each in failed for line in terminal.indented(f"{each.name}: {each.fault}", width))]
        lines.append(f"  left out of the scores: {listed([each.name for each in failed])}")
    kept = sum(each.kept for each in outcomes)
    if kept:
        lines += ["", f"  reused: {kept} rows of earlier runs; their candidates, problems, settings, device and "
                      "this software are what they were"]
    device_scores = scores(outcomes)
    lines += ["", score_text(device_scores, width)] if device_scores else []
    return "\n".join(lines)


def summary_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same under stable keys, with every record."""
    problems = [{
        "problem": each.name, "path": shown(each.path), "csv": each.csv_path and shown(each.csv_path),
        "fault": each.fault, "reused": each.kept, "records": [record.to_json() for record in each.records],
    } for each in outcomes]
    return {"problems": problems, "scores": score_json(scores(outcomes))}


def _counts(outcome: Outcome, own: Sequence[Record]) -> str:
    if outcome.fault is not None and not own:
        return "did not run"
    if outcome.without_candidate:
        return "none"
    return ", ".join(f"{count} {status}" for status, count in Counter(record.status.value for record in own).items())
