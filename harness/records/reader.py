"""Reads records back from a CSV, typed, whichever version of this software or spreadsheet wrote it last.

What the reader does not know it passes over with a note; what it needs and does not find is an InputError
with the file and line. Choosing among files is left to `runs`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path

from harness.errors import InputError
from harness.records.schema import FIELDS, SCHEMA_VERSION, Field, Record, clean_text
from harness.reading.text_files import read_text

Row = dict[str, str]
MIGRATIONS: dict[int, Callable[[Row], Row]] = {}  # version → what makes a row one of the next version

_BY_NAME = {column.name: column for column in FIELDS}
_DEFAULTED = ("role",)  # required in a record, but with a default


def read_records(path: Path | str, note: Callable[[str], None] | None = None) -> list[Record]:
    """The records of a CSV in the order of its rows; an empty list when a run wrote its header and no more.

    `note` is called with one sentence when there are columns this version does not know. Raises InputError
    when the file is missing, empty, not a CSV of ours, cut short, or written by a newer version.
    """
    path = Path(path)
    rows, header = _rows_of(path)
    missing = [each.name for each in FIELDS if each.required and each.name not in (*header, *_DEFAULTED)]
    if missing:
        raise InputError(
            f"not a file of results: it has no column {', '.join(missing)}", path, 1,
            hint="Give a CSV that a run wrote below results/",
        )
    columns = [(_BY_NAME.get(name), {}) for name in header]
    records = [_record_of(_typed(columns, cells, path, line), path, line) for line, cells in rows]
    unknown = [name for name in header if name not in _BY_NAME]
    if unknown and note is not None:
        note(f"{path}: passed over columns that this version does not know: {', '.join(unknown)}")
    return records


def _rows_of(path: Path) -> tuple[list[tuple[int, list[str]]], list[str]]:
    """The rows as (line number, cells), and the header."""
    reader = csv.reader(io.StringIO(read_text(path, (".csv",)), newline=""))
    rows: list[tuple[int, list[str]]] = []
    try:
        header = next(reader, [])
        for cells in reader:
            if cells and len(cells) != len(header):
                raise InputError(
                    f"{len(cells)} values where the header names {len(header)} columns: was it cut short?",
                    path, reader.line_num,
                )
            if cells:
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise InputError(f"not a CSV: {error}", path, reader.line_num) from None
    if not header:
        raise InputError("the file is empty", path, hint="Give a CSV that a run wrote below results/")
    return rows, header


def _typed(
    columns: list[tuple[Field | None, dict[str, object]]], cells: list[str], path: Path, line: int
) -> dict[str, object]:
    """The cells of a row as values of this version; what is empty or of an unknown column is left out.

    `columns` holds each column with the values that its texts had so far: most cells repeat one of an earlier row.
    """
    version = next(cell for (column, _), cell in zip(columns, cells) if column and column.name == "schema_version")
    if version != str(SCHEMA_VERSION):
        row = {column.name: cell for (column, _), cell in zip(columns, cells) if column is not None}
        row = _at_this_version(row, path, line)
        known = [name for name in row if name in _BY_NAME]
        columns, cells = [(_BY_NAME[name], {}) for name in known], [row[name] for name in known]
    values: dict[str, object] = {}
    for (column, seen), cell in zip(columns, cells):
        if column is None or (cell == "" and not column.required):
            continue
        if cell in seen:
            value = seen[cell]
        else:
            value = seen[cell] = _value(column, cell, path, line)
        if value is not None:
            values[column.name] = value
    return values


def _at_this_version(row: Row, path: Path, line: int) -> Row:
    version = _value(_BY_NAME["schema_version"], row["schema_version"], path, line)
    if version > SCHEMA_VERSION:
        raise InputError(
            f"written by a newer version of this software (schema {version}, known here: {SCHEMA_VERSION})",
            path, line, hint="Update this software, or run the problem again with this one",
        )
    for step in range(version, SCHEMA_VERSION):
        row = MIGRATIONS.get(step, dict)(row)
    return row | {"schema_version": str(SCHEMA_VERSION)}


def _record_of(values: dict[str, object], path: Path, line: int) -> Record:
    try:
        return Record.of_typed(values)
    except (ValueError, TypeError) as error:
        raise InputError(str(error), path, line) from None


def _value(column: Field, text: str, path: Path, line: int) -> object:
    """The typed value of a cell. Spreadsheets write TRUE for true and 8.0 for 8; both are understood."""
    if text == "" and not column.required:
        return None
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
        expected = _in_words(column.type)
        raise InputError(f"{column.name} is {text!r}, which is no {expected}", path, line) from None


def _whole(text: str) -> int:
    number = float(text)
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def _in_words(kind: type) -> str:
    words = {int: "whole number", float: "number", bool: "true or false"}
    return words.get(kind, f"{kind.__name__} that this version knows")
