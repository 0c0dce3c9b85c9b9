"""`run.py report`: one HTML file of all results, with charts, that opens offline."""

from __future__ import annotations

import argparse
import json
import webbrowser
from pathlib import Path

from harness.model.errors import InputError
from harness.model.files.text_files import replacing, shown
from harness.model.paths import folders_of
from harness.report.html.run_files import find_sources, gather
from harness.results.writer import utc_now

_MARK = b"kernel-referee report"  # in the head of every page of ours
_HEAD_BYTES = 4096


def run(options: argparse.Namespace) -> int:
    """Write the page; raises InputError for results or an --out that cannot be used."""
    paths = options.paths
    out = options.out or (paths[0] / "report.html" if len(paths) == 1 and paths[0].is_dir() else Path("report.html"))
    _check_out(out)
    for folder in options.candidates:
        if not folder.is_dir():
            raise InputError("there is no such folder of candidates", folder,
                             hint="Leave --candidates out for candidates/")
    gathered = gather(paths)

    from harness.report.html.page import render

    utc = utc_now()
    page = render(gathered, find_sources([*options.candidates, *folders_of("candidates")]), utc)
    size = _write(out, page.html)
    if options.json:
        print(json.dumps({
            "html": str(out), "bytes": size, "runs": len(gathered.runs), "problems": page.problems, "rows": page.entries,
            "notes": list(page.notes),
        }))
    else:
        for note in page.notes:
            print(f"note: {note}")
        counts = ((page.problems, "problem"), (len(gathered.runs), "run"), (page.entries, "row"))
        counts_text = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
        print(f"Report: {shown(out)} ({size / 1e6:.1f} MB: {counts_text})")
    if options.open:
        webbrowser.open(out.resolve().as_uri())
    return 0


def _check_out(out: Path) -> None:
    """Refuse to write over anything that is no report of ours: a CSV named by mistake is somebody's week."""
    if out.is_dir():
        raise InputError("is a folder", out, hint=f"Type --out {out / 'report.html'}")
    if out.exists() and not out.is_file():  # a device or a pipe: the finished file would take its place
        raise InputError("is not a regular file, so no report is put in its place", out,
                         hint="Choose another --out FILE")
    try:
        head = out.open("rb").read(_HEAD_BYTES) if out.exists() else _MARK
    except OSError as error:
        raise InputError(f"cannot be read to see whether it is a report: {error.strerror or error}", out) from None
    if _MARK not in head and head.strip():
        raise InputError("is there already and is no report of ours, so it is left alone", out,
                         hint="Choose another --out FILE")


def _write(out: Path, html: str) -> int:
    """Write the whole file or none of it. Returns its size in bytes."""
    content = html.encode("utf-8")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as part:
            part.write_bytes(content)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", out,
                         hint="Choose another place with --out FILE") from None
    return len(content)
