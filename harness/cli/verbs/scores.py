"""`run.py scores`: KernelBench's scores over the results of a folder of problems."""

from __future__ import annotations

import argparse
import json
import sys

from harness.model.files.text_files import shown
from harness.report import terminal
from harness.report.score_table import score_json, score_text
from harness.results.result_files import find_runs
from harness.results.scores import scores_of


def run(options: argparse.Namespace) -> int:
    """Print the scores, device by device. Raises InputError for what holds no results."""
    runs, notes = find_runs(options.paths, history=True)
    scores = scores_of(runs)
    if options.json:
        print(json.dumps({"csv": [shown(each.path) for each in runs], "notes": notes, "scores": score_json(scores)}))
        return 0
    for note in notes:
        print(note, file=sys.stderr)
    print(score_text(scores, terminal.width_of(sys.stdout)))
    return 0
