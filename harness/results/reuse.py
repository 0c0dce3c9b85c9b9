"""Rows of earlier runs that still hold: nothing that went into them has changed, so they need not be made again."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.model.candidate import Candidate
from harness.model.errors import InputError
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.model.verdict import WANT_ANOTHER_DEVICE, ReasonCode, Status
from harness.results.assembly import harness_hash
from harness.results.reader import read_records
from harness.results.record import Record
from harness.results.result_files import memory_gb
from harness.results.samples import read_samples
from harness.results.writer import device_slug

# What another try may turn out differently although nothing that is recorded has changed: a busy machine, a compiler
# or a Triton that has been installed since, a defect of ours that is mended.
_TRIED_AGAIN = {Status.UNSURE, Status.HARNESS_ERROR, *WANT_ANOTHER_DEVICE}


@dataclass(frozen=True)
class Kept:
    """A record that still holds, and the CSV it lies in."""

    record: Record
    csv_path: Path

    def samples(self) -> Mapping[str, Any]:
        """Its raw samples from the `.jsonl` beside the CSV; empty when they are gone."""
        return read_samples(self.csv_path, self.record)


def kept_at_every_size(
    out_dir: Path, problem: Problem, candidates: Sequence[Candidate], settings: Settings,
    devices: Sequence[DeviceIdentity],
) -> dict[str, tuple[Kept, ...]]:
    """The rows that still hold, on any of `devices`, of each candidate that has one at every size; see `kept_rows`."""
    at_each: list[dict[str, Kept]] = []
    for at_one in problem.each_size():
        by_device = [kept_rows(out_dir, at_one, candidates, settings, device) for device in devices]
        at_each.append({name: row for rows in by_device for name, row in rows.items()})
    shared = [name for name in at_each[0] if all(name in rows for rows in at_each)]
    return {name: tuple(rows[name] for rows in at_each) for name in shared}


def kept_rows(
    out_dir: Path, problem: Problem, candidates: Sequence[Candidate], settings: Settings, device: DeviceIdentity
) -> dict[str, Kept]:
    """The newest row of each candidate (by its name) that still holds, from the CSVs of this problem and device.

    The candidate's source and name, the problem's hash and sizes, this software's own source, the values of the
    settings, the device, torch, CUDA and the driver are all what they were, and no file that the candidate may read
    beside its own has changed since the run began. A device without a UUID stands for all of its model.
    """
    folder = out_dir / problem.name / device_slug(device.name, device.kind)
    of_device = ("torch", "cuda", "driver", *(["uuid"] if device.uuid is not None else []))
    wanted = {
        "problem_hash": problem.hash, "sizes": sizes_text(problem.timed_sizes(device.kind)), "dtype": problem.dtype,
        "mode": problem.mode, "harness_hash": harness_hash(), "config_hash": settings.hash, "device_kind": device.kind,
        "baseline_hash": problem.baseline and problem.baseline.source_hash, "device_name": device.name,
        **{name: getattr(device, name) for name in of_device},
    }
    known = {each.name: each for each in candidates}
    kept: dict[str, Kept] = {}
    for path in sorted(folder.glob("*.csv"), key=lambda path: path.stem, reverse=True):
        try:
            records = read_records(path)
        except InputError:
            continue  # not ours, or of another version: then it holds nothing that could be kept
        for record in records:
            candidate = known.get(record.candidate)
            is_wanted = record.role == "candidate" and candidate is not None and candidate.source_hash == record.source_hash
            # With more time for a row, which the settings' hash does not hold, that one may end.
            is_open = record.status in _TRIED_AGAIN or record.reason_code == ReasonCode.ROW_TIMEOUT
            is_open |= record.time_us is not None and record.speedup is None  # the baseline it was to be over was not ok
            if is_wanted and not is_open and record.candidate not in kept:
                is_same_size = memory_gb(record.memory_bytes) == memory_gb(device.memory_bytes)
                is_same = is_same_size and all(getattr(record, name) == value for name, value in wanted.items())
                if is_same and not _has_other_files(candidate, record.utc):
                    kept[record.candidate] = Kept(record, path)
    return kept


def _has_other_files(candidate: Candidate, utc: str) -> bool:
    """Whether anything that the candidate may read beside its file, which no hash covers, was put there or changed
    since `utc`, by the time at which the system noted it: a file's time of modification is anybody's to set.
    """
    try:
        since = datetime.fromisoformat(utc.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return True
    beside = (path for path in candidate.beside().own if path.name != candidate.path.name)
    return any(_changed_at(path) > since for top in beside for path in (top, *_below(top)))


def _below(folder: Path) -> Iterator[Path]:
    for inside, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(inside, name) for name in (*folders, *names))


def _changed_at(path: Path) -> float:
    try:
        return path.lstat().st_ctime
    except OSError:
        return 0.0
