"""`run.py 'DIR/*.py' --candidates DIR2`: many problems one after the other, one summary; `--resume` keeps rows."""

from __future__ import annotations

import argparse
import fnmatch
import functools
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.device.choice import check_device_name, check_device_names, check_ray, require_torch
from harness.model.candidate import Candidate, find_candidates, read_candidate, rivals_of
from harness.model.errors import InputError, NothingToRun
from harness.model.files.text_files import shown
from harness.model.problem import Problem
from harness.model.settings import Settings, check_one_size, load_settings
from harness.model.verdict import NEVER_LAUNCHED, Status
from harness.protocol.clocks.idle_threads import shorten_spinning
from harness.report import terminal
from harness.results.own_baseline import fault_of
from harness.runs.suite import children
from harness.runs.suite.early_builds import building_ahead
from harness.runs.suite.problems import Loaded, is_suite, load_all, own_files, owned_files, problem_paths
from harness.runs.suite.sequence import Suite, each_judged
from harness.runs.suite.summary import Outcome, summary_json, summary_text
from harness.tools.sanitizer.compute_sanitizer import require_tool

EXIT_STRICT, EXIT_HARNESS_FAILED, EXIT_NOTHING_RAN, EXIT_INTERRUPTED = 1, 1, 4, 130


def run(options: argparse.Namespace) -> int:
    """Run every problem that the words mean. Returns the exit code; raises HarnessError when none can be run."""
    check_device_name(options.device)
    check_ray(options)
    names = check_device_names(options.devices, options.device) if options.devices else ()
    settings = load_settings(options.config)
    if options.sizes and is_suite(options.problem):
        raise InputError("--sizes is for one problem: each has sizes of its own", hint="Name one problem file")
    if options.baseline is not None and is_suite(options.problem):
        raise InputError("--baseline is for one problem: each has a baseline of its own",
                         hint="Name one problem file, or give each YAML a baseline")
    if names or options.ray:
        check_one_size(options, "--ray" if options.ray else "--devices")
    loaded = load_all(problem_paths(options.problem), options.candidates, options.mode, options.sizes,
                      options.baselines, options.baseline)
    if all(each.problem is None for each in loaded):
        raise InputError("\n".join(str(each.fault) for each in loaded))
    chosen = _candidates(loaded, options)
    if options.sanitize:
        if options.resume:
            raise InputError("--resume cannot tell whether an earlier row was sanitized",
                             hint="Leave one of the two out")
        if not options.ray:
            require_tool("cpu" if set(names) == {"cpu"} else options.device)
    require_torch()
    if options.ray:
        return _run_on_cluster(options, settings, loaded, chosen)
    shorten_spinning(os.environ)
    say = functools.partial(_say, options)
    devices = children.devices_here(names, say) if names else (options.device,)
    known = [children.identify(each) for each in devices] if options.resume else []
    suite = Suite(options, settings, known, on_all=len(devices) > len(loaded))
    later = [(each.problem, chosen.get(each.path, [])) for each in loaded[1:] if each.problem is not None]
    with building_ahead(later, devices[0], settings):
        return _told(options, loaded, each_judged(loaded, chosen, suite, devices, say))


def _run_on_cluster(
    options: argparse.Namespace, settings: Settings, loaded: Sequence[Loaded], chosen: dict[Path, list[Candidate]]
) -> int:
    """The same on the devices of a cluster."""
    from harness.runs.cluster.link import connected

    with connected(options.ray, options.device, options.accelerator) as link:
        from harness.report.progress import open_progress
        from harness.runs.cluster.run import identities, judges_for  # imports torch

        with open_progress(silent=options.json) as progress:
            suite = Suite(options, settings, identities(link, progress, options.wait) if options.resume else [], on_all=True)
        judges = judges_for(link, len(loaded), silent=options.json)
        return _told(options, loaded, each_judged(loaded, chosen, suite, (), functools.partial(_say, options), judges))


def _told(options: argparse.Namespace, loaded: Sequence[Loaded], judged: Iterator[Outcome]) -> int:
    """Show each outcome as it comes, and all of them at the end. Returns the exit code."""
    outcomes: list[Outcome] = []
    try:
        for outcome in judged:
            outcomes.append(outcome)
            _show(options, outcome)
    except KeyboardInterrupt:
        if outcomes:
            _report(options, outcomes)
        print("interrupted; the same command with --resume goes on from here", file=sys.stderr)
        return EXIT_INTERRUPTED
    places = {each.path: place for place, each in enumerate(loaded)}
    outcomes.sort(key=lambda outcome: places[outcome.path])
    _report(options, outcomes)
    return _exit_code(options, outcomes)


def _candidates(loaded: Sequence[Loaded], options: argparse.Namespace) -> dict[Path, list[Candidate]]:
    """The candidates of each problem file. Raises InputError for a glob that matches none in the whole suite."""
    problems = [each.problem for each in loaded if each.problem is not None]
    if not is_suite(options.problem):  # one problem with --resume: its folder is its own, as without
        [only_one] = problems
        candidates = find_candidates(only_one.candidate_folders, options.only, options.skip, only_one.form)
        return {only_one.path: rivals_of(only_one.baseline, candidates)}
    if options.candidates is None:
        files = {problem.name: own_files(problem) for problem in problems}
    else:
        owned = owned_files(problems, options.candidates)
        files = owned.files
        if owned.nobodys:
            names = ", ".join(path.name for path in owned.nobodys[:5]) + (" …" if len(owned.nobodys) > 5 else "")
            files_of = f"{len(owned.nobodys)} file{'s' if len(owned.nobodys) > 1 else ''}"
            _say(options, f"belong to none of the problems by their names: {names} ({files_of})")
    names = {path.stem for candidates in files.values() for path in candidates}
    if not names:
        where = shown(options.candidates) if options.candidates else "candidates/"
        raise NothingToRun(f"{where} has no candidate for any of these {len(problems)} problems: a candidate lies in a "
                           "folder of its problem's name, or begins with it, as in 15_x/mine.py or 15_x_mine.py")
    for flag, globs in (("--only", options.only), ("--skip", options.skip)):
        for glob in globs:
            if not any(_matches(name, [glob]) for name in names):
                raise InputError(f"{flag} '{glob}' matches no candidate of these problems")
    kept = {name for name in names if (not options.only or _matches(name, options.only))
            and not _matches(name, options.skip)}
    return {problem.path: _rivals(problem, [read_candidate(path, form=problem.form) for path in files[problem.name]
                                            if path.stem in kept]) for problem in problems}


def _rivals(problem: Problem, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates beside the problem's own baseline, perhaps none. Raises InputError where names collide."""
    try:
        return rivals_of(problem.baseline, candidates)
    except NothingToRun:
        return []


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob.removesuffix(".py")) for glob in globs)


def _show(options: argparse.Namespace, outcome: Outcome) -> None:
    """The leaderboard of a problem as soon as there is one; of several models one for each."""
    if options.json:
        return
    for each in outcome.results:
        if each.kept:
            print(f"{outcome.name}: reused {each.kept} row{'s' * (each.kept != 1)} of earlier runs, now in {shown(each.path)}", file=sys.stderr)
    if outcome.fault:
        print(f"{outcome.name}: {outcome.fault}", file=sys.stderr)
    for each in outcome.results:
        from harness.report.leaderboard import render

        command = re.sub(r" --only ('[^']*'|\S+)", "", each.records[-1].command or "")
        print(render(each.records, command=command or None, records_path=shown(each.path),
                     **terminal.fitting(sys.stdout)), end="\n\n", flush=True)


def _report(options: argparse.Namespace, outcomes: Sequence[Outcome]) -> None:
    print(json.dumps(summary_json(outcomes)) if options.json else summary_text(outcomes, terminal.width_of(sys.stdout)))


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.json:
        print(text, file=sys.stderr, flush=True)


def _exit_code(options: argparse.Namespace, outcomes: Sequence[Outcome]) -> int:
    if any(record.status is Status.HARNESS_ERROR for each in outcomes for record in each.records):
        return EXIT_HARNESS_FAILED
    own = [record for each in outcomes for record in each.records if record.role == "candidate"]
    if all(record.status in NEVER_LAUNCHED for record in own):
        return EXIT_NOTHING_RAN
    faults = [fault for each in outcomes if (fault := fault_of(each.records)) is not None]
    for fault in faults:
        print(fault, file=sys.stderr)
    if faults:
        return faults[0].exit_code
    failed = any(each.fault for each in outcomes) or any(record.status is not Status.OK for record in own)
    return EXIT_STRICT if options.strict and failed else 0
