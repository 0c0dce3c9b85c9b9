"""`run.py selftest`: how far the numbers of this device can be trusted, and with --adversarial who can be fooled."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.device.choice import check_device_name, check_device_names, check_ray, device_kind, require_torch
from harness.model.errors import InputError
from harness.model.files.text_files import shown
from harness.model.settings import Settings, load_settings
from harness.report import terminal
from harness.report.progress import open_progress
from harness.report.table import Column, fitted, table_text
from harness.sandbox.prestart import prestart
from harness.selftest import matrix
from harness.selftest.corpus import CORPUS, Case, chosen, read_corpus
from harness.selftest.matrix import AS_EXPECTED, HEADINGS, NOT_RUN, Row, cells

if TYPE_CHECKING:
    from harness.judge.run import Judging
    from harness.report.progress import Progress
    from harness.selftest.known_time import Waits

EXIT_NOT_AS_EXPECTED, EXIT_NOTHING_RAN = 3, 4


def run(options: argparse.Namespace) -> int:
    """Put the harness to the test. Returns 0, 3 when something is not as it should be, 4 when nothing could run."""
    check_device_name(options.device)
    check_ray(options)
    if options.devices:
        check_device_names(options.devices, options.device)
    for value, flag in ((options.only, "--only …"), (options.skip, "--skip …"), (options.write, "--write …"),
                        (options.no_naive, "--no-naive"), (options.devices, "--devices all")):
        if value and not options.adversarial:
            raise InputError(f"{flag.split()[0]} is about the corpus", hint=f"Type selftest --adversarial {flag}")
    if options.adversarial and options.config != "quick":
        raise InputError("--config is about eager against itself", hint="Type selftest --config default")
    if options.repeat < 1 or (options.repeat > 1 and options.adversarial):
        raise InputError("--repeat is how often eager is timed against itself", hint="Type selftest --repeat 10")
    if options.write:
        matrix.check_markers(options.write)
    cases = chosen(read_corpus(CORPUS), options.only, options.skip) if options.adversarial else []
    settings = load_settings(options.config)
    require_torch()
    if not options.ray:
        prestart()
    return _adversarial(options, cases) if options.adversarial else _timing(options, settings)


def _timing(options: argparse.Namespace, settings: Settings) -> int:
    """Time eager against itself, and known waits: on one device, or on each of a cluster, one after the other."""
    from harness.judge.run import run as judge_here
    from harness.selftest import control_row

    folder = options.out or control_row.new_folder()
    with ExitStack() as stack:
        progress = stack.enter_context(open_progress(silent=options.json))
        if not options.ray:
            kind = device_kind(options.device)
            found = {"": _timed(options, settings, kind, options.device, folder, progress, judge_here)}
        else:
            from harness.runs.cluster.link import connected
            from harness.runs.cluster.run import run_on

            link = stack.enter_context(connected(options.ray, options.device, options.accelerator))
            found = {seat.label: _timed(options, settings, link.kind, link.kind, folder, progress, run_on(seat, link))
                     for seat in link.seats()}
    is_trusted = all(each["as_expected"] for each in found.values())
    if options.json:
        print(json.dumps({"as_expected": is_trusted, "devices": found} if options.ray else found[""]))
    else:
        texts = ["\n".join([*([f"{device}:"] if device else []), *each["sentences"], "", _where(map(Path, each["csv"]))])
                 for device, each in found.items()]
        print("\n\n".join(texts))
    return 0 if is_trusted else EXIT_NOT_AS_EXPECTED


def _timed(
    options: argparse.Namespace, settings: Settings, kind: str, device: str, folder: Path, progress: Progress,
    judge: Judging,
) -> dict[str, Any]:
    """What came of one device, as `--json` has it; `sentences` are for people."""
    from harness.selftest import control_row, known_time

    began = time.monotonic()
    records, paths = control_row.run_control(kind, device, folder, progress, settings, options.repeat, options.wait, judge)
    waits, more = known_time.run_waits(kind, device, folder, progress, settings, options.wait, judge)
    alike = [*records, *(each for wait in waits for each in wait.records if each.candidate in ("eager", "itself"))]
    rows = len(records) + sum(len(wait.records) for wait in waits)
    seen = [each for wait, path in zip(waits, more) for each in known_time.clocks_of(wait.records, path)]
    seconds = (time.monotonic() - began) / rows
    trusted = control_row.can_be_trusted(alike, settings.eager_players) and all(wait.adds_up for wait in waits)
    return {
        "csv": list(map(str, [*paths, *more])), "as_expected": trusted, "seconds_per_row": seconds,
        "records": [record.to_json() for record in records], "waits": list(map(_wait_json, waits)),
        "clocks": [{"candidate": each.record.candidate, "sizes": each.record.sizes, **each.clocks.to_json()}
                   for each in seen],
        "sentences": [
            *map(known_time.sentence, waits), *known_time.clock_sentences(seen),
            *control_row.sentences(alike, settings.eager_players),
            f"A row took {seconds:.1f} s, builds included (--config {options.config}).",
        ],
    }


def _wait_json(wait: Waits) -> dict[str, Any]:
    return {"spin": wait.spin, "step_us": wait.step_us, "asked_us": wait.asked_us, "apart": wait.apart,
            "bent": wait.bent, "adds_up": wait.adds_up, "records": [record.to_json() for record in wait.records]}


def _adversarial(options: argparse.Namespace, cases: Sequence[Case]) -> int:
    from harness.device.choice import devices_of
    from harness.selftest.adversarial import run_corpus

    with ExitStack() as stack:
        progress = stack.enter_context(open_progress(silent=options.json))
        link = None
        if options.ray:
            from harness.runs.cluster.link import connected

            link = stack.enter_context(connected(options.ray, options.device, options.accelerator))
        names = check_device_names(options.devices) if options.devices else ()
        devices = devices_of(names, progress.note) if names else (options.device,)
        findings = run_corpus(cases, devices, options.out, progress, link, options.wait,
                              with_naive=not options.no_naive)
    kept = matrix.keep(findings.rows, findings.controls[0], findings.folder, whole=not (options.only or options.skip))
    if options.write:
        matrix.write(options.write, kept)
    if options.json:
        print(json.dumps({
            "csv": list(map(str, findings.csv_paths)), "as_expected": findings.as_expected,
            "totals": findings.sentences, "rows": [asdict(row) for row in findings.rows],
        }))
    else:
        print("\n".join([_table(findings.rows), "", *findings.sentences, "", *_reasons(findings.rows),
                         _where(findings.csv_paths)]))
    if all(row.outcome == NOT_RUN for row in findings.rows):
        return EXIT_NOTHING_RAN
    return 0 if findings.as_expected else EXIT_NOT_AS_EXPECTED


def _table(rows: Sequence[Row]) -> str:
    columns = [Column(title, "left", list(texts)) for title, texts in zip(HEADINGS, zip(*(cells(row) for row in rows)))]
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
