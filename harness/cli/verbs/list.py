"""`run.py list`: the problems there are, with sizes, candidates and settings; imports neither torch nor a candidate."""

from __future__ import annotations

import argparse
import json
from typing import Any

from harness.model.candidate import find_candidates
from harness.model.errors import HarnessError
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.problem import Problem, load_problem, problems_by_name, typed
from harness.model.settings import settings_names
from harness.model.sizes_text import sizes_text


def run(options: argparse.Namespace) -> int:
    """Print the list. A problem that cannot be loaded is listed with what is wrong with it."""
    listed, faults = [], []
    for path in problems_by_name().values():
        try:
            listed.append(_described(load_problem(path)))
        except HarnessError as error:
            faults.append(str(error))
    if options.json:
        print(json.dumps({"problems": listed, "faults": faults, "settings": settings_names()}))
        return 0
    for problem in listed:
        print(f"{problem['typed']}\n  {problem['title']}")
        print(f"  sizes: {problem['sizes']} on a GPU, {problem['cpu_sizes']} on a CPU")
        for candidate in problem["candidates"]:
            fault = f"  ({candidate['fault']})" if candidate["fault"] else ""
            print(f"    {candidate['name']:<28} {candidate['language']}{fault}")
        print()
    for fault in faults:
        print(fault)
    print(f"settings for --config: {', '.join(settings_names())}")
    if listed:
        print(f"Next: {PROGRAM} {listed[0]['typed']}")
    return 0


def _described(problem: Problem) -> dict[str, Any]:
    try:
        candidates = find_candidates(problem.candidate_folders, form=problem.form)
    except HarnessError:
        candidates = []
    return {"name": problem.name, "path": shown(problem.path), "typed": typed(problem.path), "title": problem.title,
            "sizes": sizes_text(problem.sizes), "cpu_sizes": sizes_text(problem.cpu_sizes),
            "candidates": [{"name": each.name, "language": each.language, "fault": each.fault} for each in candidates]}
