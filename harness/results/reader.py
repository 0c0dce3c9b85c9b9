"""Reads records back from a CSV, typed, whichever version of this software or spreadsheet wrote it last.

What it does not know it passes over with a note; what it needs and does not find is an InputError with file and line.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.text_files import read_text
from harness.results.record import FIELDS, SCHEMA_VERSION, UNSET, Field, Record, clean_text

_BY_NAME = {column.name: column for column in FIELDS}
_DEFAULTED = ("role",)  # required in a record, but with a default
_FIGURES = ("time_us", "baseline_us", "speedup", "speedup_lo", "speedup_hi")  # every version has written these
_HINT = "Give a CSV that a run wrote below results/"


def read_records(path: Path | str, note: Callable[[str], None] | None = None) -> list[Record]:
    """The records of a CSV in the order of its rows; an empty list when a run wrote its header and no more.

    `note` is called with one sentence when there are columns this version does not know, and when columns of times
    or speedups were taken away. Raises InputError when the file is missing, empty, not a CSV of ours, cut short, or
    written by a newer version.
    """
    path = Path(path)
    rows, header = _rows_of(path)
    _refuse_newer(header, rows, path)
    records = _records_of(header, rows, path)
    unknown = [name for name in header if name not in _BY_NAME]
    gone = [name for name in _FIGURES if name not in header]
    if unknown and note is not None:
        note(f"{path}: passed over columns that this version does not know: {', '.join(unknown)}")
    if gone and note is not None:
        note(f"{path}: has no column {', '.join(gone)}: taken as not measured")
    return records


def _rows_of(path: Path) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """The rows as (line number, cells), and the header; what has another header is no file to count cells in."""
    reader = csv.reader(io.StringIO(read_text(path, (".csv",)), newline=""))
    rows: list[tuple[int, list[str]]] = []
    try:
        header = next((cells for cells in reader if cells), None)
        if header is None:
            raise InputError("the file is empty", path, hint=_HINT)
        missing = [each.name for each in FIELDS if each.required and each.name not in (*header, *_DEFAULTED)]
        if missing:
            message = f"not a file of results: it has no column {', '.join(missing)}"
            raise InputError(message, path, reader.line_num, hint=_HINT)
        for cells in filter(None, reader):
            if len(cells) != len(header):
                message = f"{len(cells)} values where the header names {len(header)} columns: was it cut short?"
                raise InputError(message, path, reader.line_num)
            rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise InputError(f"not a CSV: {error}", path, reader.line_num) from None
    return rows, header


def _refuse_newer(header: list[str], rows: list[tuple[int, list[str]]], path: Path) -> None:
    """Raise InputError for the first row of a newer version, before any value in it that this one may not know."""
    place = header.index("schema_version")
    for line, cells in rows:
        version = _value(_BY_NAME["schema_version"], cells[place], path, line)
        if version > SCHEMA_VERSION:
            raise InputError(
                f"written by a newer version of this software (schema {version}, known here: {SCHEMA_VERSION})",
                path, line, hint="Update this software, or run the problem again with this one",
            )


def _records_of(header: list[str], rows: list[tuple[int, list[str]]], path: Path) -> list[Record]:
    """The rows as records. Columns are made sense of one by one: most cells of a column say the same."""
    lines = [line for line, _ in rows]
    texts = zip(*(cells for _, cells in rows))
    named = [(name, column) for name, column in zip(header, texts) if name in _BY_NAME]
    columns = [_values_of(_BY_NAME[name], column, path, lines) for name, column in named]
    names = [name for name, _ in named]
    missing = [name for name in UNSET if name not in names]
    columns += [[UNSET[name]] * len(lines) for name in missing]
    names += missing
    records = []
    for line, values in zip(lines, zip(*columns)):
        try:
            records.append(Record.of_typed(dict(zip(names, values))))
        except (ValueError, TypeError) as error:
            raise InputError(str(error), path, line) from None
    return records


def _values_of(field: Field, texts: tuple[str, ...], path: Path, lines: list[int]) -> list[object]:
    if texts.count(texts[0]) == len(texts):  # device, versions, problem: half of all columns
        return [_value(field, texts[0], path, lines[0])] * len(texts)
    if field.type is float:
        try:
            numbers = [float(text) if text else None for text in texts]
            return [None if number is None or not math.isfinite(number) else number for number in numbers]
        except ValueError:
            pass  # the slow way finds the line
    first_lines = dict(zip(reversed(texts), reversed(lines)))
    meant = {text: _value(field, text, path, line) for text, line in first_lines.items()}
    return [meant[text] for text in texts]


def _value(column: Field, text: str, path: Path, line: int) -> object:
    """The typed value of a cell. Spreadsheets write TRUE for true and 8.0 for 8; both are understood."""
    if text == "" and not column.required:
        return UNSET[column.name]
    try:
        if column.type is bool:
            return {"true": True, "false": False}[text.strip().lower()]
        if column.type is int:
            return int(text) if text.strip().lstrip("-").isdigit() else _whole(text)
        if column.type is float:
            number = float(text)
            return number if math.isfinite(number) else None
        return clean_text(text) if column.type is str else column.type(text)
    except (ValueError, KeyError):
        words = {int: "whole number", float: "number", bool: "true or false"}
        expected = words.get(column.type, f"{column.type.__name__} that this version knows")
        raise InputError(f"{column.name} is {text!r}, which is no {expected}", path, line) from None


def _whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)
