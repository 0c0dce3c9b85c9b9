"""The command that would settle what a comparison could not: which run to make again, and what to compare it with."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.results.changes import Change
from harness.results.record import Record
from harness.results.writer import device_slug

_MOST_NAMES = 8


def rerun(records: Sequence[Record]) -> str:
    """What to type to measure these candidates of one problem again, for longer."""
    first = records[0]
    names = [record.candidate for record in records if record.role == "candidate"]
    only = [f"--only {shlex.quote(name)}" for name in names] if len(names) <= _MOST_NAMES else []
    plain = _plain(first.command, first.problem, first.device_kind, chosen=not only)
    return " ".join([plain, *only, "--config rigorous"])


@lru_cache(maxsize=None)
def _plain(command: str | None, problem: str, device_kind: str | None, chosen: bool) -> str:
    """The command of a run, the usual one where none was recorded, without its --config, what it chose unless `chosen`,
    and a folder for results that is not there, as of another machine.
    """
    if not command:
        return f"{PROGRAM} problems/{problem}.yaml" + (" --device cpu" if device_kind == "cpu" else "")
    dropped = ["config", *([] if chosen else ["only", "skip"]), *([] if _out_of(command) else ["out"])]
    return re.sub(rf" --({'|'.join(dropped)})[ =]('[^']*'|\S+)| --resume\b", "", command)


def _out_of(command: str | None) -> str | None:
    """The folder for results that a command names, if it is there."""
    match = re.search(r" --out[ =]('[^']*'|\S+)", command or "")
    folder = match.group(1).strip("'") if match else None
    return folder if folder and Path(folder).is_dir() else None


def settle(changes: Sequence[tuple[Record, Change]], reference: Path) -> list[str]:
    """What to do about candidates that came out UNSURE against the run in `reference`: a command, then what to know."""
    records = [record for record, _ in changes]
    if all(record.config == "rigorous" for record in records):
        return [f"{PROGRAM} selftest   says which differences are real on this machine: rigorous could not tell"]
    lines = [then_compare(records, reference)]
    if any("older" in change.too_wide for _, change in changes):
        lines.append("the older run's own intervals are wider than the margin: where its software is still there, run "
                     "the same command with that too, and compare the two new CSVs")
    elif any(change.basis == "time" for _, change in changes):
        lines.append("with the software of the older run on this machine today, both would have one baseline")
    return lines


def then_compare(records: Sequence[Record], reference: Path) -> str:
    """`rerun`, and the comparison of what that leaves with the run in `reference`."""
    first = records[0]
    device = (first.device_name or "unknown", first.device_kind or "cuda")
    return f"{rerun(records)} && {_compared_with(reference, first.command, first.problem, *device)}"


@lru_cache(maxsize=None)
def _compared_with(reference: Path, command: str | None, problem: str, device_name: str, device_kind: str) -> str:
    folder = f"{_out_of(command) or 'results'}/{problem}/{device_slug(device_name, device_kind)}"
    return f"{PROGRAM} compare {shlex.quote(shown(reference))} {shlex.quote(folder)}"
