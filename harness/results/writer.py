"""Writes a run's records as CSV and its raw samples as JSON lines, beside each other.

Both files are made before the first measurement, so that a missing permission is found early, and extended
after each candidate, so that a crash keeps what was won.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import tempfile
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, Protocol, TextIO

from harness.model.errors import InputError
from harness.model.files.text_files import replacing
from harness.results.record import FIELDS, Record, clean_text

# Up to so many rows the CSV is written anew with each, in one move; of thousands that takes longer than to judge them.
_MOST_ANEW = 256
_CPU_NOISE = re.compile(r"\((?:r|tm)\)|@.*$|\b(?:\d+-core|cpu|processor)\b", re.IGNORECASE)


def device_slug(device_name: str, device_kind: str = "cuda") -> str:
    """A folder name: `NVIDIA H200` → `nvidia-h200`, the CPU `AMD EPYC 9654` → `cpu-amd-epyc-9654`."""
    name = _CPU_NOISE.sub(" ", device_name) if device_kind == "cpu" else device_name
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].rstrip("-") or "unknown"
    return f"cpu-{slug}" if device_kind == "cpu" and not slug.startswith("cpu-") else slug


def utc_now() -> str:
    """The time, ISO 8601 in UTC, as records have it."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def check_writable(out_dir: Path) -> None:
    """Make the folder, and raise InputError where nothing can be written there: before hours of judging, not after."""
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out_dir).close()
    except OSError as error:
        raise _unwritable(out_dir, error) from None


def _unwritable(folder: Path, error: OSError) -> InputError:
    hint = "Choose a folder that you can write to with --out DIR"
    return InputError(f"cannot write the results to {folder}: {error.strerror or error}", hint=hint)


class RecordSink(Protocol):
    """Where the records of a run go: its files, the answers of a judge that stays, or the pipe to a parent."""

    def append(self, record: Record, samples: Mapping[str, Any] | None = None) -> str | None:
        """Take a record and its raw samples. Returns None, or one sentence on what could not be written."""


class RunFiles:
    """The two files of one run: `csv_path` with a row for each record, `jsonl_path` with its raw samples. `latest` are
    those that this process began last: who is interrupted can be told where they are.
    """

    latest: ClassVar[RunFiles | None] = None

    def __init__(self, csv_path: Path, jsonl_path: Path) -> None:
        self.csv_path, self.jsonl_path = csv_path, jsonl_path
        self.records: list[Record] = []
        self._in_csv = 0  # how many of `records` are in the file
        self._unwritten: list[str] = []  # lines that the disk has refused so far
        # Open for as long as candidates run: on a file that nobody writes to, whoever can read it can take a lease, and
        # then opening it for writing takes 45 s.
        self._held: TextIO | None = None

    @classmethod
    def create(cls, out_dir: Path | str, problem_name: str, device_slug: str, utc: str) -> RunFiles:
        """Make `out_dir/problem_name/device_slug/UTC.csv` (the header alone) and the empty `.jsonl` beside it.

        `utc` is ISO 8601; the file is named without its dashes and colons (`20250601T123000Z`), which no file
        system refuses. A second run in the same second gets `-2`. Raises InputError when the disk refuses.
        """
        folder = Path(out_dir) / problem_name / device_slug
        stem = re.sub(r"[-:]", "", re.sub(r"(\.\d+)?(\+00:00)?Z?$", "", utc)) + "Z"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for attempt in range(1, 1000):
                csv_path = folder / (f"{stem}.csv" if attempt == 1 else f"{stem}-{attempt}.csv")
                with contextlib.suppress(FileExistsError):
                    csv_path.open("x").close()
                    break
            files = cls(csv_path, csv_path.with_suffix(".jsonl"))
            files._rewrite()
            files._held = files.jsonl_path.open("a", encoding="utf-8")
            cls.latest = files
        except OSError as error:
            raise _unwritable(folder, error) from None
        return files

    def append(self, record: Record, samples: Mapping[str, Any] | None = None) -> str | None:
        """Add a record and its samples. Returns None, or a sentence if the disk refused: the next call tries again."""
        self.records.append(record)
        line = {name: getattr(record, name) for name in ("schema_version", "run_id", "candidate", "role")}
        line |= {"status": record.status.value, "samples": jsonable(samples or {})}
        text = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        self._unwritten.append(text + "\n")
        refusal = self._refusal()
        return refusal and f"{refusal}; what it lacks is kept in memory and tried again"

    def finish(self, records: Iterable[Record]) -> str | None:
        """Put `records`, now with their ranks, in the place of what was written. Returns None, or one sentence when the
        disk still refuses: then both files are below the temporary folder, and `csv_path` says where.
        """
        self.records, self._in_csv = list(records), 0
        refusal = self._refusal()
        self.let_go()
        return refusal and f"{refusal}; {self._save_elsewhere()}"

    def let_go(self) -> None:
        """Hold no file open any more, where there are too many of them; records are written as before."""
        if self._held is not None:
            self._held.close()

    def remove_if_empty(self) -> None:
        """Take the files of a run that ended before its first record off the disk."""
        if not self.records:
            for path in (self.csv_path, self.jsonl_path):
                path.unlink(missing_ok=True)

    def _refusal(self) -> str | None:
        """Write what is not on the disk yet; what the disk said, if it refused any of it."""
        refusals = []
        for write in (self._rewrite if self._in_csv < _MOST_ANEW else self._add_rows, self._add_lines):
            try:
                write()
            except OSError as error:
                refusals.append(f"could not write {self.csv_path}: {error.strerror or error}")
        return refusals[0] if refusals else None

    def _save_elsewhere(self) -> str:
        """Where the whole run is now, in words: nothing tries again once it has ended."""
        try:
            folder = Path(tempfile.mkdtemp(prefix="kernel-referee-results-"))
            csv_path, jsonl_path = folder / self.csv_path.name, folder / self.jsonl_path.name
            csv_path.write_text(csv_text(self.records), encoding="utf-8", newline="")
            there = self.jsonl_path.read_text(encoding="utf-8") if self.jsonl_path.is_file() else ""
            jsonl_path.write_text(there + "".join(self._unwritten), encoding="utf-8", newline="")
        except OSError:
            return "nor could the temporary folder take it: what is printed is all that there is of the missing rows"
        self.csv_path, self.jsonl_path = csv_path, jsonl_path
        self._unwritten.clear()
        return f"the whole run is in {csv_path} instead"

    def _rewrite(self) -> None:
        with replacing(self.csv_path) as part:
            part.write_text(csv_text(self.records), encoding="utf-8", newline="")
        self._in_csv = len(self.records)

    def _add_rows(self) -> None:
        _, rows = csv_text(self.records[self._in_csv:]).split("\n", 1)
        _add_whole(self.csv_path, rows)
        self._in_csv = len(self.records)

    def _add_lines(self) -> None:
        _add_whole(self.jsonl_path, "".join(self._unwritten))
        self._unwritten.clear()


def _add_whole(path: Path, text: str) -> None:
    """Put `text` at the end of the file at `path`, or nothing of it. Raises OSError."""
    size = path.stat().st_size
    try:
        with path.open("a", encoding="utf-8", newline="") as stream:
            stream.write(text)
    except OSError:
        os.truncate(path, size)  # half a line would spoil the file for every reader
        raise


def csv_text(records: Iterable[Record]) -> str:
    """The records as CSV: a header, then a row each; None is an empty field, floats keep every digit."""
    stream = io.StringIO()
    rows = csv.writer(stream, lineterminator="\n")
    rows.writerow([column.name for column in FIELDS])
    for record in records:
        rows.writerow([_cell(value) for value in record.to_json().values()])
    return stream.getvalue()


def _cell(value: str | int | float | bool | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def jsonable(value: Any) -> Any:
    """Samples in plain lists and numbers: tuples and arrays become lists, what is not finite becomes null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return clean_text(str(value))
