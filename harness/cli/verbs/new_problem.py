"""`run.py new-problem`: a problem that is complete as it stands, to be changed from there."""

from __future__ import annotations

import argparse
import json

from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.problem import typed
from harness.model.scaffold import new_problem


def run(options: argparse.Namespace) -> int:
    """Write a problem and say what comes next."""
    yaml_path, reference_path = new_problem(options.name, options.problems)
    make = f"{PROGRAM} new {typed(yaml_path)} first"
    if options.json:
        print(json.dumps({"path": shown(yaml_path), "reference": shown(reference_path), "new": make}))
    else:
        print(f"{shown(yaml_path)} and {shown(reference_path)} are there, and complete as they stand.")
        print(f"Next: edit them, and type {make}   for a first candidate")
    return 0
