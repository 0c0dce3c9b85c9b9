"""Finds the runs that a person means by a list of files and folders; a run is one CSV with its records.

A file stands for itself, a folder for the newest run of each problem on each device below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.records.reader import read_records
from harness.records.schema import Record


@dataclass(frozen=True)
class Run:
    """One CSV that holds at least one record."""

    path: Path
    records: tuple[Record, ...]

    @property
    def device_name(self) -> str:
        return self.records[0].device_name or self.records[0].device_kind or self.path.parent.name

    @property
    def utc(self) -> str:
        return self.records[0].utc


def find_runs(paths: Iterable[Path | str]) -> tuple[list[Run], list[str]]:
    """The runs in the order named, each once, and notes on what was passed over.

    Raises InputError for a file that is missing, no CSV of ours or without records, and for a folder without
    runs. A file below a folder that cannot be read is passed over with a note: nobody named it.
    """
    runs: list[Run] = []
    notes: list[str] = []
    for path in map(Path, paths):
        found = _newest_below(path, notes) if path.is_dir() else [_named(path, notes)]
        known = {run.path.resolve() for run in runs}
        runs += [run for run in found if run.path.resolve() not in known]
    return runs, notes


def _named(path: Path, notes: list[str]) -> Run:
    records = read_records(path, notes.append)
    if not records:
        raise InputError(
            "the file has a header and no records: that run ended before its first result", path,
            hint="Run the problem again, or name another CSV",
        )
    return Run(path, tuple(records))


def _newest_below(folder: Path, notes: list[str]) -> list[Run]:
    newest: dict[tuple[str, str], Run] = {}
    for path in sorted(folder.rglob("*.csv")):
        try:
            records = read_records(path)
        except InputError as error:
            notes.append(f"passed over {error}")
            continue
        if not records:
            continue
        run = Run(path, tuple(records))
        key = (run.records[0].problem, run.device_name)
        if key not in newest or (newest[key].utc, newest[key].path.name) < (run.utc, path.name):
            newest[key] = run
    if not newest:
        hint = "`python run.py PROBLEM` writes some"
        raise InputError("there are no results below this folder", folder, hint=hint)
    return list(newest.values())
