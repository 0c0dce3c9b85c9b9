"""The matrix where it stays: in the folder of results, and between markers of a page such as docs/design/adversarial.md.

A run over part of the corpus adds to what its folder holds, so that a matrix can be made in several sittings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.model.errors import InputError
from harness.report import terminal
from harness.results.record import Record
from harness.selftest.matrix import Row, in_order, markdown


@dataclass(frozen=True)
class Kept:
    """The rows of a folder for one kind of device, under the title that they have on a page."""

    device_kind: str
    title: str
    rows: list[Row]


def keep(rows: Sequence[Row], control: Record, out_dir: Path, *, whole: bool) -> Kept:
    """Put `rows` into `out_dir`, beside those of earlier runs on this kind of device unless this one was `whole`.

    `control` is the record of eager in the same run; it names the device.
    """
    kind = control.device_kind or "cpu"
    path = out_dir / f"matrix-{kind}.json"
    fresh = {row.name: row for row in rows}
    together = in_order((fresh if whole else {**_earlier(path), **fresh}).values())
    path.write_text(json.dumps([asdict(row) for row in together], indent=1), encoding="utf-8")
    return Kept(kind, _title(control), together)


def check_markers(path: Path) -> None:
    """Raise InputError unless `path` is a page with the places that `write` fills."""
    for kind in ("cuda", "cpu"):
        _places(path, kind)


def write(path: Path, kept: Kept) -> None:
    """Replace what stands between the page's markers for the device by the matrix. Raises InputError."""
    text, begin, end = _places(path, kept.device_kind)
    section = markdown(kept.rows, kept.title)
    try:
        path.write_text(f"{text[:begin]}\n{section}\n{text[end:]}", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", path) from None


def _places(path: Path, kind: str) -> tuple[str, int, int]:
    """The text of the page, and where the matrix of `kind` begins and ends in it."""
    first, last = f"<!-- matrix:{kind} -->", f"<!-- /matrix:{kind} -->"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({getattr(error, 'strerror', None) or error})", path) from None
    found = re.search(f"{re.escape(first)}(.*?){re.escape(last)}", text, re.DOTALL)
    if found is None:
        raise InputError("has no place for the matrix", path, hint=f"Write the lines {first} and {last} into it.")
    return text, found.start(1), found.end(1)


def _earlier(path: Path) -> dict[str, Row]:
    try:
        return {body["name"]: Row(**body) for body in json.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _title(control: Record) -> str:
    device = f"{control.device_name}" + (" (device=cpu)" if control.on_cpu else "")
    return f"### {device} · torch {control.torch} · {terminal.date_text(control.utc)}"
