"""`run.py selftest`: how far the numbers of this device can be trusted, and with --adversarial who can be fooled."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.clocks.openmp import shorten_spinning
from harness.device.choose import check_device_name, check_device_names
from harness.errors import InputError, NothingToRun
from harness.reading.text_files import shown
from harness.report import terminal
from harness.report.progress import open_progress
from harness.report.table import Column, fitted, table_text
from harness.selftest import page
from harness.selftest.choice import chosen
from harness.selftest.corpus import CORPUS, Case, read_corpus
from harness.selftest.matrix import AS_EXPECTED, HEADINGS, NOT_RUN, Row, cells

if TYPE_CHECKING:
    from harness.selftest.adversarial import Findings

EXIT_NOT_AS_EXPECTED, EXIT_NOTHING_RAN = 3, 4


def run(options: argparse.Namespace) -> int:
    """Put the harness to the test. Returns 0, 3 when something is not as it should be, 4 when nothing could run."""
    check_device_name(options.device)
    if options.devices:
        check_device_names(options.devices, options.device)
        if not options.adversarial:
            hint = "Type selftest --device cuda:0, or selftest --adversarial --devices all"
            raise InputError("--devices is about the corpus: the control is a device's own", hint=hint)
    for flag, value in (("--only", options.only), ("--skip", options.skip), ("--write", options.write)):
        if value and not options.adversarial:
            raise InputError(f"{flag} is about the corpus", hint=f"Type selftest --adversarial {flag} …")
    if options.write:
        page.check_markers(options.write)
    cases = chosen(read_corpus(CORPUS), options.only, options.skip) if options.adversarial else []
    if importlib.util.find_spec("torch") is None:
        raise NothingToRun(f"PyTorch is not installed for {sys.executable}. Type python run.py doctor")
    shorten_spinning(os.environ)
    return _adversarial(options, cases) if options.adversarial else _control(options)


def _control(options: argparse.Namespace) -> int:
    from harness.selftest import control

    with open_progress(silent=options.json) as progress:
        records, paths = control.run_control(options.device, options.out, progress)
    trusted = control.can_be_trusted(records)
    if options.json:
        print(json.dumps({"csv": list(map(str, paths)), "as_expected": trusted,
                          "records": [record.to_json() for record in records]}))
    else:
        print("\n".join([*control.sentences(records), "", _where(paths)]))
    return 0 if trusted else EXIT_NOT_AS_EXPECTED


def _adversarial(options: argparse.Namespace, cases: Sequence[Case]) -> int:
    from harness.device.choose import devices_of
    from harness.selftest.adversarial import run_corpus

    with open_progress(silent=options.json) as progress:
        names = check_device_names(options.devices) if options.devices else ()
        devices = devices_of(names, progress.note) if names else (options.device,)
        found = run_corpus(cases, devices, options.out, progress)
    kept = page.keep(found.rows, found.controls[0], found.folder, whole=not (options.only or options.skip))
    if options.write:
        page.write(options.write, kept)
    if options.json:
        print(json.dumps(_as_json(found)))
    else:
        told = [_table(found.rows), "", *found.sentences, "", *_reasons(found.rows), _where(found.csv_paths)]
        print("\n".join(told))
    if all(row.outcome == NOT_RUN for row in found.rows):
        return EXIT_NOTHING_RAN
    return 0 if found.as_expected else EXIT_NOT_AS_EXPECTED


def _as_json(found: Findings) -> dict[str, Any]:
    return {
        "csv": list(map(str, found.csv_paths)), "as_expected": found.as_expected,
        "totals": found.sentences, "rows": [asdict(row) for row in found.rows],
    }


def _table(rows: Sequence[Row]) -> str:
    columns = [
        Column(title, "left", list(texts)) for title, texts in zip(HEADINGS, zip(*(cells(row) for row in rows)))
    ]
    return table_text(fitted(columns, terminal.width_of(sys.stdout), ("fools", "group"))[0])


def _reasons(rows: Sequence[Row]) -> list[str]:
    """A paragraph for each row that is not as it should be: what the harness said of it."""
    width = terminal.width_of(sys.stdout)
    lines = [
        line for row in rows if row.outcome not in AS_EXPECTED
        for line in terminal.indented(": ".join(filter(None, (row.name, row.outcome, row.verdict, row.reason))), width)
    ]
    return [*lines, ""] if lines else []


def _where(paths: Sequence[Path]) -> str:
    return f"records: {', '.join(str(shown(path)) for path in paths)}"
