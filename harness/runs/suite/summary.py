"""One summary for many problems: a line for each, then KernelBench's scores; of several GPU models one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
class OfModel(ResultFile):
    """The rows of one problem on the devices of one team; `kept` of its candidates have an earlier run's."""

    kept: int = 0


@dataclass(frozen=True)
class Outcome:
    """What became of one problem: its results, for each model among the devices, and why there are none of one, or at all."""

    path: Path
    name: str
    results: tuple[OfModel, ...] = ()
    fault: str | None = None
    without_candidate: bool = False

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(record for each in self.results for record in each.records)

    @property
    def kept(self) -> int:
        return sum(each.kept for each in self.results)


def by_model(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes on each model alone, by what it is called; PyTorch's version tells apart what has one name."""
    teams = dict.fromkeys(result.team for each in outcomes for result in each.results)
    names = Counter(name for _, name, _, _ in teams)
    return {
        name if names[name] == 1 else f"{name} with PyTorch {torch} (CUDA {cuda})": [
            replace(each, results=tuple(result for result in each.results if result.team == (kind, name, torch, cuda)))
            for each in outcomes
        ]
        for kind, name, torch, cuda in teams
    }


def scores(outcomes: Sequence[Outcome]) -> list[DeviceScores]:
    """KernelBench's scores of each model; a problem without a candidate counts as not solved, one that failed to load
    not at all.
    """
    models = by_model(outcomes)
    if len(models) < 2:
        return _scores(outcomes)
    return [replace(each, device_name=name) for name, own in models.items() for each in _scores(own)]


def _scores(outcomes: Sequence[Outcome]) -> list[DeviceScores]:
    runs = [result for each in outcomes for result in each.results]
    return scores_of(runs, [each.name for each in outcomes if each.without_candidate])


def summary_text(outcomes: Sequence[Outcome], width: int | None) -> str:
    """The table of problems, the faults in words, the scores, and where the results are; a table for each model."""
    count = f"{len(outcomes)} {'problem' if len(outcomes) == 1 else 'problems'}"
    models = by_model(outcomes)
    titled = {f"{count} · {name}": own for name, own in models.items()} if len(models) > 1 else {count: outcomes}
    lines: list[str] = []
    for title, own in titled.items():
        lines += ["", title] if lines else [title]
        lines += ["", _table(own)]
    failed = [each for each in outcomes if each.fault]
    if failed:
        lines += ["", *(line for each in failed for line in terminal.indented(f"{each.name}: {each.fault}", width))]
        without = [each.name for each in failed if not each.results]
        lines += [f"  left out of the scores: {listed(without)}"] if without else []
    kept = sum(each.kept for each in outcomes)
    if kept:
        lines += ["", f"  reused: {kept} rows of earlier runs; their candidates, problems, settings, device and "
                      "this software are what they were"]
    device_scores = scores(outcomes)
    lines += ["", score_text(device_scores, width)] if device_scores else []
    return "\n".join(lines)


def _table(outcomes: Sequence[Outcome]) -> str:
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
    return table_text([each for each in columns if any(each.cells)])


def summary_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The same under stable keys, with every record."""
    return {"problems": [_problem_json(each) for each in outcomes], "scores": score_json(scores(outcomes))}


def _problem_json(outcome: Outcome) -> dict[str, Any]:
    paths = [shown(each.path) for each in outcome.results]  # several where GPUs are of several models
    return {
        "problem": outcome.name, "path": shown(outcome.path), "csv": paths[0] if paths else None, "csvs": paths,
        "fault": outcome.fault, "reused": outcome.kept, "records": [record.to_json() for record in outcome.records],
    }


def _counts(outcome: Outcome, own: Sequence[Record]) -> str:
    if outcome.fault is not None and not own:
        return "did not run"
    if outcome.without_candidate:
        return "none"
    return ", ".join(f"{count} {status}" for status, count in Counter(record.status.value for record in own).items())
