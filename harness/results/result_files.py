"""Finds the runs that a person means by a list of files, folders and globs; a run is what one CSV holds of one device.

A file stands for itself, a folder for the newest run of each problem on each device below it, or for all of them.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness.model.errors import InputError
from harness.model.paths import PROGRAM, located
from harness.results.reader import read_records
from harness.results.record import Record


@dataclass(frozen=True)
class ResultFile:
    """At least one record of one device, and the CSV they are from."""

    path: Path
    records: tuple[Record, ...]

    @property
    def device_name(self) -> str:
        return self.records[0].device_name or self.records[0].device_kind or self.path.parent.name

    @property
    def device_kind(self) -> str | None:
        return self.records[0].device_kind

    @property
    def team(self) -> tuple[str | None, ...]:
        return self.records[0].team

    @cached_property
    def utc(self) -> str:
        """When it began; a run that took over rows of an earlier one is as new as its newest row."""
        return max(record.utc for record in self.records)

    @property
    def known_device(self) -> tuple[object, ...]:
        """As `device`, but that the name stands for a GPU whose UUID nobody knows."""
        return self.device if self.device[0] != "file" else (self.device_name,)

    @cached_property
    def device(self) -> tuple[object, ...]:
        return device_of(self.records[0], self.path)


def device_of(record: Record, path: Path) -> tuple[object, ...]:
    """Equal for two records of the very same device: the GPU's UUID; for a CPU its name, cores and memory in GB. A GPU
    without a UUID is like no other but of its own file: two cards of one model are two cards.
    """
    if record.uuid:
        return ("uuid", record.uuid)
    if record.on_cpu:
        return ("cpu", record.device_name, record.sm_count, memory_gb(record.memory_bytes))
    return ("file", str(path), record.device_name)


def memory_gb(memory_bytes: int | None) -> int | None:
    """Memory in whole 10⁹ bytes: what the system leaves of it differs by some kB from one start to the next."""
    return None if memory_bytes is None else round(memory_bytes / 1e9)


def find_runs(paths: Iterable[Path | str], *, history: bool = False) -> tuple[list[ResultFile], list[str]]:
    """The runs in the order named, each once, and notes on what was passed over.

    With `history` a folder stands for all runs below it. Raises InputError for a file that is missing, no CSV of ours
    or without records, for a folder without runs, and for a glob that nothing matches. A file below a folder or of a
    glob that cannot be read is passed over with a note: nobody named it.
    """
    notes: list[str] = []
    runs: dict[tuple[object, ...], ResultFile] = {}
    for path in paths:
        for run in _meant_by(located(Path(path)), notes, history=history):
            runs.setdefault((run.path.resolve(), *run.device), run)
    return list(runs.values()), notes


def _meant_by(path: Path, notes: list[str], *, history: bool) -> list[ResultFile]:
    if path.is_dir():
        return _runs_below(path, notes, history=history)
    if not path.exists() and glob.has_magic(str(path)):
        return _matching(path, notes, history=history)
    if path.suffix == ".jsonl" and path.is_file():
        beside = path.with_suffix(".csv")
        hint = f"Name {beside}" if beside.exists() else "Name a CSV"
        raise InputError("holds raw samples; what is compared are the CSVs", path, hint=hint)
    try:
        runs = _runs_in(path, notes)
    except InputError as error:
        if path.exists() or error.hint:
            raise
        raise InputError(error.message, path, hint=f"`{PROGRAM} PROBLEM` writes results") from None
    if not runs:
        message = "the file has a header and no records: that run ended before its first result"
        raise InputError(message, path, hint="Run the problem again, or name another CSV")
    return runs


def _runs_in(path: Path, notes: list[str] | None = None) -> list[ResultFile]:
    """One run for each device that the file has rows of."""
    by_device: dict[tuple[object, ...], list[Record]] = {}
    for record in read_records(path, None if notes is None else notes.append):
        by_device.setdefault(device_of(record, path), []).append(record)
    return [ResultFile(path, tuple(each)) for each in by_device.values()]


def _matching(pattern: Path, notes: list[str], *, history: bool) -> list[ResultFile]:
    paths = [Path(each) for each in sorted(glob.glob(str(pattern), recursive=True))]
    if not paths:
        raise InputError("no file matches this pattern", pattern, hint=f"`{PROGRAM} PROBLEM` writes results")
    runs: list[ResultFile] = []
    for path in paths:
        runs += _runs_below(path, notes, history=history) if path.is_dir() else _readable(path, notes)
    if not runs:
        raise InputError(f"none of the {len(paths)} files is one of results", pattern, hint=_first_of(notes))
    return runs


def _runs_below(folder: Path, notes: list[str], *, history: bool) -> list[ResultFile]:
    newest: dict[tuple[object, ...], ResultFile] = {}
    for path in sorted(folder.rglob("*.csv")):
        for run in _readable(path, notes):
            asked = frozenset((record.problem, record.mode or "forward") for record in run.records)
            key = (str(path) if history else "", asked, *run.known_device)
            if key not in newest or (newest[key].utc, newest[key].path.name) < (run.utc, path.name):
                newest[key] = run
    if not newest:
        hint = _first_of(notes) or f"`{PROGRAM} PROBLEM` writes some"
        raise InputError("there are no results below this folder", folder, hint=hint)
    return list(newest.values())


def _readable(path: Path, notes: list[str]) -> list[ResultFile]:
    """The runs of a file that nobody named by itself; what is no CSV of ours is noted."""
    if path.suffix == ".jsonl" and path.with_suffix(".csv").exists():
        return []  # the raw samples beside a CSV
    try:
        runs = _runs_in(path)
    except InputError as error:
        notes.append(f"passed over {error}")
        return []
    if not runs:
        notes.append(f"passed over {path}: that run ended before its first result")
    return runs


def is_readable(path: Path) -> bool:
    """Whether the file is a CSV of ours with at least one record."""
    return bool(_readable(path, []))


def _first_of(notes: list[str]) -> str | None:
    return notes[0][0].upper() + notes[0][1:] if notes else None
