"""Finds the one record that a person means by a candidate's name, by its file, or by a CSV and a name.

Of several runs the newest counts; which others there are is told, so that nobody looks at the wrong GPU's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.spelling import hint_for, listed
from harness.model.verdict import Status
from harness.results.reader import read_records
from harness.results.record import Record

_HOW = "Type a candidate's name, its file, or a CSV and a name"


@dataclass(frozen=True)
class FoundRecord:
    """A record and the CSV it is in; `others` are CSVs with further records of that name, newest first,
    `at_other_sizes` the other records of a run at several sizes.
    """

    record: Record
    path: Path
    others: tuple[Path, ...] = ()
    at_other_sizes: tuple[Record, ...] = ()


def find_record(words: Sequence[str], results: Path) -> FoundRecord:
    """The newest record that `words` name: `NAME`, `PROBLEM/NAME`, `FILE.py`, `CSV NAME`, `DIR NAME` or `CSV`. Names
    are looked for below `results` unless a file or folder is named. Raises InputError, with the nearest name.
    """
    if not 1 <= len(words) <= 2:
        raise InputError(f"{len(words)} words where one or two are understood", hint=_HOW)
    first = Path(words[0])
    if first.suffix == ".csv":
        return _in_file(first, words[1] if len(words) == 2 else None)
    if len(words) == 2:
        if not first.is_dir():
            raise InputError("there is no such folder of results", first, hint=_HOW)
        return _below(first, words[1].removesuffix(".py"), None)
    if first.is_dir():
        raise InputError(f"{shown(first)} is a folder of many candidates", hint=f"Type {shown(first)} NAME")
    problem = first.parent.name or None
    name = first.name.removesuffix(".py")
    if first.is_file() and all(record.problem != problem for record, _ in _matches(results, name)):
        problem = None  # a candidate's file may lie anywhere: its folder need not be named after the problem
    return _below(results, name, problem)


def _in_file(path: Path, name: str | None) -> FoundRecord:
    records = read_records(path)
    if not records:
        raise InputError("the file has a header and no records: that run ended before its first result", path)
    names = list(dict.fromkeys(record.candidate for record in records))
    if name is None and len(names) > 1:
        raise InputError(f"holds {listed(names)}", path, hint=f"Type {shown(path)} {names[-1]}")
    wanted = names[0] if name is None else name.removesuffix(".py")
    matching = [record for record in records if record.candidate == wanted]
    if not matching:
        raise InputError(f"has no record of '{name}'", path, hint=hint_for(wanted, names, "There are"))
    return _found(matching, path)


def _below(folder: Path, name: str, problem: str | None) -> FoundRecord:
    matches = [pair for pair in _matches(folder, name) if problem in (None, pair[0].problem)]
    if not matches:
        raise _not_found(folder, name, problem)
    matches.sort(key=lambda pair: (pair[0].utc, pair[1].name), reverse=True)
    path, *others = (each for _, each in matches)
    newest = [each for each in read_records(path) if each.candidate == name and problem in (None, each.problem)]
    return _found(newest, path, tuple(others))


def _found(records: Sequence[Record], path: Path, others: tuple[Path, ...] = ()) -> FoundRecord:
    """The last record of each sizes: the first that is not ok, or else that of the first sizes, before the others."""
    by_sizes = {record.sizes: record for record in records}
    first, *more = sorted(by_sizes.values(), key=lambda record: record.status is Status.OK)
    return FoundRecord(first, path, others, tuple(more))


def _matches(folder: Path, name: str) -> Iterator[tuple[Record, Path]]:
    """The last record of that name in each CSV that has one."""
    if not folder.is_dir():
        raise InputError("there is no such folder of results", shown(folder), hint=f"`{PROGRAM} PROBLEM` makes one")
    for path, records in _records_below(folder, name):
        yield from ((record, path) for record in [each for each in records if each.candidate == name][-1:])


def _records_below(folder: Path, name: str = "") -> Iterator[tuple[Path, list[Record]]]:
    """Each CSV that can be read, with its records; most do not have the `name` at all, and are not taken apart then."""
    for path in sorted(folder.rglob("*.csv")):
        with contextlib.suppress(InputError, OSError):
            yield path, read_records(path) if name.encode() in path.read_bytes() else []


def _not_found(folder: Path, name: str, problem: str | None) -> InputError:
    known: dict[str, set[str]] = {}
    for _, records in _records_below(folder):
        for record in records:
            known.setdefault(record.candidate, set()).add(record.problem)
    if not known:
        hint = f"`{PROGRAM} PROBLEM` writes some"
        return InputError("there are no results below this folder", shown(folder), hint=hint)
    if name in known:
        message = f"there are results of '{name}' for {listed(sorted(known[name]))}, none for '{problem}'"
        return InputError(message, hint=f"Type {sorted(known[name])[0]}/{name}")
    hint = hint_for(name, sorted(known), "There are")
    return InputError(f"no results below {shown(folder)} name '{name}'", hint=hint)
