"""`run.py new` and `run.py new-problem`: a candidate or a problem that runs as it stands, to be changed from there."""

from __future__ import annotations

import argparse
import json

from harness.problem import find_problem, load_problem
from harness.reading.text_files import shown
from harness.scaffold import new_candidate, new_problem


def candidate(options: argparse.Namespace) -> int:
    """Write a candidate for `options.problem` and say how to run it."""
    path_of_problem = find_problem(options.problem)
    problem = load_problem(path_of_problem, options.candidates)
    path = new_candidate(problem, options.name, options.rung)
    elsewhere = f" --candidates {shown(options.candidates)}" if options.candidates is not None else ""
    run = f"python run.py {shown(path_of_problem)}{elsewhere} --only {path.stem}"
    if options.json:
        print(json.dumps({"path": shown(path), "run": run}))
    else:
        print(f"{shown(path)} is there, and runs as it stands.\nNext: edit it, and type {run}")
    return 0


def problem(options: argparse.Namespace) -> int:
    """Write a problem and say what comes next."""
    yaml_path, reference_path = new_problem(options.name, options.problems)
    make = f"python run.py new {shown(yaml_path)} first"
    if options.json:
        print(json.dumps({"path": shown(yaml_path), "reference": shown(reference_path), "new": make}))
    else:
        print(f"{shown(yaml_path)} and {shown(reference_path)} are there, and run as they stand.")
        print(f"Next: edit them, and type {make}   for a first candidate")
    return 0
