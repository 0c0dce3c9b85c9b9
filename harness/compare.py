"""Sets runs side by side: the CSVs of several devices, or of one device last week and today.

Which files are meant is found by `records.runs`, the joining done by `records.comparison`, the drawing by
`report.side_by_side`; here they are put together.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.errors import InputError
from harness.records.comparison import Comparison, join
from harness.records.runs import Run, find_runs
from harness.report.side_by_side import render


def compare(paths: Iterable[Path | str], *, width: int | None = 140) -> str:
    """The runs of the files and folders as text; a folder stands for its newest run of each problem and
    device.

    Tables wider than `width` are broken between runs. Raises InputError when a path cannot be used or when
    there is only one run.
    """
    comparison, notes = compare_runs(paths)
    return render(comparison, notes, width=width)


def compare_runs(paths: Iterable[Path | str]) -> tuple[Comparison, list[str]]:
    """The same as values, with notes on files passed over; `Comparison.regressions()` is for an exit code."""
    paths = [Path(path) for path in paths]
    if not paths:
        hint = "As in `python run.py compare results/tril_matmul/`"
        raise InputError("name two CSVs or a folder of results", hint=hint)
    runs, notes = find_runs(paths)
    if len(runs) < 2:
        raise _only_one(runs[0], paths[0])
    return join(runs), notes


def _only_one(run: Run, named: Path) -> InputError:
    others = sorted(each for each in run.path.parent.glob("*.csv") if each.name != run.path.name)
    if others:
        hint = f"`python run.py compare {others[-1]} {run.path}` compares two runs on one device"
    else:
        hint = "Name a second CSV, or a folder with the results of several devices"
    found = f"{run.device_name}, {run.utc}"
    return InputError(f"there is one run here ({found}), so nothing to compare", named, hint=hint)
