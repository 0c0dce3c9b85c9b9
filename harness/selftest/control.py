"""The control by itself: eager PyTorch in a player against eager PyTorch in the referee, on the shipped problems.

Whatever the ratio is off one by is no property of a kernel: it is what this device, today, does to every number.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.pipeline import RunRequest
from harness.pipeline import run as judge_all
from harness.problem import list_problems
from harness.records.schema import Record
from harness.report import terminal
from harness.report.progress import Progress
from harness.settings import load_settings
from harness.verdict import Status

# Half of what a kernel of interest gains would be this device's own doing.
TOO_FAR = 0.05


def new_folder() -> Path:
    """A new temporary folder for the records of a selftest; it stays."""
    return Path(tempfile.mkdtemp(prefix="kernel-referee-selftest-"))


def run_control(device: str, out_dir: Path | None, progress: Progress) -> tuple[list[Record], list[Path]]:
    """The record of "eager" for each shipped problem under ``--config quick``, and the files they are in.

    Without `out_dir` those lie in a new temporary folder. Raises HarnessError for what is the machine's fault.
    """
    settings, records, paths = load_settings("quick"), [], []
    folder = out_dir or new_folder()
    for problem in list_problems():
        progress.note(f"{problem.name}: eager against itself")
        result = judge_all(RunRequest(replace(problem, baselines=("eager",)), [], device, settings, folder), progress)
        records += result.records
        paths.append(result.csv_path)
    return records, paths


def off_by(record: Record) -> float | None:
    """How far from one the far end of the control's interval lies, relative; None when it was not measured."""
    if record.status is not Status.OK or record.speedup_lo is None or record.speedup_hi is None:
        return None
    return max(abs(1 - record.speedup_lo), abs(record.speedup_hi - 1))


def can_be_trusted(records: Sequence[Record]) -> bool:
    """Whether every control was measured and none is further off than `TOO_FAR`."""
    return bool(records) and all((off := off_by(record)) is not None and off <= TOO_FAR for record in records)


def sentences(records: Sequence[Record]) -> list[str]:
    """A line for each control, and one on how far the numbers of this device can be trusted."""
    lines = [_line(record) for record in records]
    worst = [off for record in records if (off := off_by(record)) is not None]
    if len(worst) < len(records) or not worst:
        lines.append("Eager could not be measured against itself, so no number of this device can be trusted now.")
        return lines
    percent = f"{terminal.number_text(100 * max(worst), 2)} %"
    if max(worst) > TOO_FAR:
        lines.append(f"Eager may be off itself by {percent} here, which is too far to rank kernels by. End what else "
                     "uses this device and run it again.")
    else:
        lines.append(f"A speedup of this device can be trusted to about {percent}: what differs by less is the same.")
    return lines


def _line(record: Record) -> str:
    title = f"{record.problem} ({record.sizes}): eager over itself"
    if off_by(record) is None:
        return f"{title}: {record.status.value}: {terminal.one_line(record.reason or '')}"
    ratio = terminal.ratio_text(record.speedup, record.speedup_lo, record.speedup_hi)
    return f"{title} {ratio} {record.call}, {terminal.time_text(record.time_us or 0.0)}"
