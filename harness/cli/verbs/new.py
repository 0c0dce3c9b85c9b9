"""`run.py new`: a candidate that runs as it stands, to be changed from there."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.problem import find_problem, load_problem, typed
from harness.model.scaffold import new_candidate


def run(options: argparse.Namespace) -> int:
    """Write a candidate for `options.problem` and say how to run it."""
    path_of_problem = find_problem(options.problem)
    problem = load_problem(path_of_problem, options.candidates)
    if options.candidates == problem.candidates_dir and not any(options.candidates.glob("*.py")):
        # Other problems' candidates may come to lie beside them.
        problem = replace(problem, candidates_dir=options.candidates / problem.name)
    path = new_candidate(problem, options.name, options.rung)
    elsewhere = "" if options.candidates is None else f" --candidates {shown(options.candidates)}"
    run = f"{PROGRAM} {typed(path_of_problem)}{elsewhere} --only {path.stem}"
    if options.json:
        print(json.dumps({"path": shown(path), "run": run}))
    else:
        print(f"{shown(path)} is there, and runs as it stands.\nNext: edit it, and type {run}")
    return 0
