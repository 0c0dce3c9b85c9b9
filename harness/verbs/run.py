"""`run.py PROBLEM`: judge the candidates of a problem and print the leaderboard."""

from __future__ import annotations

import argparse
import json
import os
import sys

from harness.candidate import find_candidates
from harness.clocks.openmp import shorten_spinning
from harness.device.choose import check_device_name
from harness.errors import NothingToRun
from harness.problem import load_problem
from harness.settings import load_settings
from harness.reading.text_files import shown

EXIT_STRICT, EXIT_NOTHING_RAN = 1, 4


def run(options: argparse.Namespace) -> int:
    """Validate everything that needs no torch first, then judge. Returns the exit code."""
    check_device_name(options.device)
    settings = load_settings(options.config)
    problem = load_problem(options.problem, options.candidates)
    candidates = find_candidates(problem.candidates_dir, options.only, options.skip)

    shorten_spinning(os.environ)
    from harness.pipeline import RunRequest, nothing_ran
    from harness.pipeline import run as judge_all
    from harness.report.progress import open_progress

    with open_progress(silent=options.json) as progress:
        result = judge_all(RunRequest(problem, candidates, options.device, settings, options.out), progress)
    if options.json:
        print(json.dumps({"csv": str(result.csv_path), "records": [each.to_json() for each in result.records]}))
    else:
        print(_leaderboard(options, result))
    own = [record for record in result.records if record.role == "candidate"]
    if nothing_ran(result.records):
        if options.json:
            return EXIT_NOTHING_RAN
        raise NothingToRun("No candidate could be run here; the lines under the table say why")
    if options.strict and any(record.status.value != "ok" for record in own):
        return EXIT_STRICT
    return 0


def _leaderboard(options: argparse.Namespace, result) -> str:
    from harness.leaderboard import render
    from harness.report import terminal

    return render(
        result.records, width=terminal.width_of(sys.stdout), color=terminal.color_wanted(sys.stdout),
        command=f"python run.py {shown(options.problem)}", records_path=shown(result.csv_path),
    )
