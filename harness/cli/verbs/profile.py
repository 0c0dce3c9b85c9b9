"""`run.py profile CANDIDATE`: the hardware counters of one cold call, in figures and sentences."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from harness.device.choice import check_device_name, require_torch
from harness.model.candidate import file_named, read_candidate
from harness.model.errors import InputError
from harness.model.files.text_files import shown
from harness.model.paths import folders_of
from harness.model.problem import Problem, find_problem, in_mode, load_problem, problems_by_name
from harness.model.settings import load_settings
from harness.model.sizes_text import sizes_text
from harness.model.spelling import listed
from harness.report import terminal

EXIT_NOTHING_RAN = 4


def run(options: argparse.Namespace) -> int:
    """Count and print. Returns 0, or 4 where ncu could not read the counters; the text says why."""
    check_device_name(options.device)
    settings = load_settings(options.config)
    path, problem = _meant(options.candidate, options.problem, options.candidates)
    problem = in_mode(problem, options.mode)
    candidate = read_candidate(path, form=problem.form)
    if candidate.fault:
        raise InputError(candidate.fault)
    require_torch()
    from harness.cli.counter_page import kernels_json, render
    from harness.report.progress import open_progress
    from harness.runs.profile import profile

    with open_progress(silent=options.json) as progress:
        profiled = profile(problem, candidate, options.device, settings, progress, options.wait)
    sizes = sizes_text(profiled.sizes)
    if options.json:
        print(json.dumps({
            "candidate": candidate.name, "problem": problem.name, "sizes": sizes, "mode": problem.mode,
            "parameters": candidate.parameters, "device_name": profiled.device.name, "uuid": profiled.device.uuid,
            "trouble": profiled.read.trouble, "kernels": kernels_json(profiled.read.kernels),
        }))
    elif profiled.read.trouble:
        print(f"{candidate.name}: no counters were read: {profiled.read.trouble}", file=sys.stderr)
    else:
        name = f"{candidate.name} ({candidate.parameters})" if candidate.parameters else candidate.name
        title = " · ".join(filter(None, (name, problem.name, sizes, profiled.device.name, "one cold call")))
        print(render(title, profiled.read.kernels, **terminal.fitting(sys.stdout)))
    return EXIT_NOTHING_RAN if profiled.read.trouble else 0


def _meant(word: str, problem: Path | None, folder: Path | None) -> tuple[Path, Problem]:
    """The candidate's file and its problem: from a file, PROBLEM/NAME or a name. Raises InputError."""
    path = Path(word)
    if path.suffix in (".py", ".json") and path.is_file():
        return path, _problem_of(path, problem, folder)
    if path.parent.name and problem is None and folder is None:
        problem, word = find_problem(Path(path.parent.name)), path.name
    if folder is not None and problem is None:
        raise InputError("--candidates needs --problem beside it", hint="Type --problem problems/NAME.yaml")
    if problem is not None:
        loaded = load_problem(find_problem(problem), folder)
        return file_named(word, loaded.candidate_folders), loaded
    homes = [home for folder in folders_of("candidates") for home in sorted(folder.glob("*/"))]
    file = file_named(word, homes)
    of = list(dict.fromkeys(home.name for home in homes if (home / file.name).is_file()))
    if len(of) > 1:
        raise InputError(f"'{file.stem}' is a candidate for {listed(of)}", hint=f"Type {of[0]}/{file.stem}")
    return file, _problem_of(file, None, None)


def _problem_of(path: Path, named: Path | None, folder: Path | None) -> Problem:
    """The problem that was named, or the one that the file's folder is named after."""
    if named is not None:
        return load_problem(find_problem(named), folder)
    file = problems_by_name().get(path.resolve().parent.name)
    if file is None:
        raise InputError("does not say which problem it is for", shown(path), hint="Name it with --problem FILE")
    return load_problem(file, folder)
