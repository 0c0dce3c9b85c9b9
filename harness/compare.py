"""Sets runs side by side: the CSVs of several devices, or of one device last week and today.

Which files are meant is found by `records.runs`, the joining done by `records.comparison`, the verdicts by
`records.changes` and `records.across`, the drawing by `report`; here they are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from harness.errors import InputError
from harness.places import PROGRAM
from harness.records.compared import Compared
from harness.records.comparison import JOINS, join
from harness.records.figures import Figure
from harness.records.runs import Run, find_runs, is_readable
from harness.spelling import hint_for


def compare(
    paths: Iterable[Path | str], *, by: str = "source", force: bool = False, show: Sequence[Figure] = ()
) -> Compared:
    """The runs of the files, folders and globs compared; a folder stands for its newest run of each problem and
    device.

    `by` "name" joins candidates by name, edited or not; `force` compares runs of different methods all the same.
    Raises InputError when a path cannot be used, when there is only one run, or when figures to `show` beside each other
    have no two devices.
    """
    paths = [Path(path) for path in paths]
    if not paths:
        hint = f"As in `{PROGRAM} compare results/tril_matmul/`"
        raise InputError("name two CSVs or a folder of results", hint=hint)
    if by not in JOINS:
        raise InputError(f"--by {by}: candidates are joined by source or by name", hint=hint_for(by, JOINS))
    runs, notes = find_runs(paths)
    if len(runs) < 2:
        raise _only_one(runs[0], paths[0], notes)
    compared = Compared.of(join(runs, by), notes, force=force)
    if show and not compared.across:
        hint = "Name the results of two devices, or leave --show out"
        raise InputError("--show sets devices beside each other, and no problem here was run on two", hint=hint)
    return compared


def drawn(
    compared: Compared, form: str, width: int | None, color: bool = False, show: Sequence[Figure] = ()
) -> str:
    """The comparison as `form`: table, markdown, csv or json; only the table knows of a width and of colours."""
    if form == "table":
        from harness.report.side_by_side import render

        return render(compared, width=width, color=color, show=show)
    from harness.report import comparison_files

    forms: dict[str, Callable[..., str]] = {
        "markdown": comparison_files.as_markdown, "csv": comparison_files.as_csv, "json": comparison_files.as_json,
    }
    return forms[form](compared, show)


def _only_one(run: Run, named: Path, notes: list[str]) -> InputError:
    beside = [each for each in sorted(run.path.parent.glob("*.csv")) if each.name != run.path.name]
    others = [each for each in beside if is_readable(each)]
    if others:
        hint = f"`{PROGRAM} compare {others[-1]} {run.path}` compares two runs on one device"
    else:
        hint = "Name a second CSV, or a folder with the results of several devices"
    found = f"{run.device_name}, {run.utc}"
    more = f"; and {len(notes) - 1} more" if len(notes) > 1 else ""
    passed_over = f"; {notes[0]}{more}" if notes else ""
    return InputError(f"there is one run here ({found}), so nothing to compare{passed_over}", named, hint=hint)
