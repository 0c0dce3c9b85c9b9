"""`run.py 'DIR/*.py' --candidates DIR2`: many problems one after the other, one summary; `--resume` keeps rows."""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.candidate import Candidate, find_candidates, read_candidate
from harness.clocks.openmp import shorten_spinning
from harness.device.choose import check_device_name
from harness.device.identity import DeviceIdentity
from harness.errors import HarnessError, InputError, NothingToRun
from harness.problem import Problem
from harness.reading.text_files import shown
from harness.records.earlier import kept_rows
from harness.records.reader import read_records
from harness.report import terminal
from harness.sanitizer.tool import require_tool
from harness.settings import Settings, load_settings
from harness.suite import children
from harness.suite.naming import own_folder, owned_files
from harness.suite.problems import Loaded, is_suite, load_all, problem_paths
from harness.suite.summary import Outcome, summary_json, summary_text
from harness.verbs.run import extra_words, extras_of
from harness.verdict import Status

EXIT_STRICT, EXIT_NOTHING_RAN, EXIT_INTERRUPTED = 1, 4, 130


def run(options: argparse.Namespace) -> int:
    """Run every problem that the words mean. Returns the exit code; raises HarnessError when none can be run."""
    check_device_name(options.device)
    settings = load_settings(options.config)
    loaded = load_all(problem_paths(options.problem), options.candidates, options.mode)
    if all(each.problem is None for each in loaded):
        raise InputError("\n".join(str(each.fault) for each in loaded))
    chosen = _candidates(loaded, options)
    if options.sanitize:
        if options.resume:
            hint = "Leave one of the two out"
            raise InputError("--resume cannot tell whether an earlier row was sanitized", hint=hint)
        require_tool(options.device)
    if importlib.util.find_spec("torch") is None:
        raise NothingToRun(f"PyTorch is not installed for {sys.executable}. Type python run.py doctor")
    shorten_spinning(os.environ)
    device = children.identify(options.device) if options.resume else None
    outcomes: list[Outcome] = []
    try:
        for number, each in enumerate(loaded, 1):
            _say(options, f"[{number}/{len(loaded)}] {each.problem.name if each.problem else shown(each.path)}")
            outcomes.append(_one(each, chosen.get(each.path, []), options, settings, device))
            _show(options, outcomes[-1])
    except KeyboardInterrupt:
        if outcomes:
            _report(options, outcomes)
        print("interrupted; the same command with --resume goes on from here", file=sys.stderr)
        return EXIT_INTERRUPTED
    _report(options, outcomes)
    return _exit_code(options, outcomes)


def _candidates(loaded: Sequence[Loaded], options: argparse.Namespace) -> dict[Path, list[Candidate]]:
    """The candidates of each problem file. Raises InputError for a glob that matches none in the whole suite."""
    problems = [each.problem for each in loaded if each.problem is not None]
    if not is_suite(options.problem):  # one problem with --resume: its folder is its own, as without
        [only_one] = problems
        return {only_one.path: find_candidates(only_one.candidates_dir, options.only, options.skip)}
    if options.candidates is None:
        files = {problem.name: own_folder(problem) for problem in problems}
    else:
        owned = owned_files(problems, options.candidates)
        files = owned.files
        if owned.nobodys:
            names = ", ".join(path.name for path in owned.nobodys[:5]) + (" …" if len(owned.nobodys) > 5 else "")
            _say(options, f"belong to none of the problems by their names: {names} ({len(owned.nobodys)} files)")
    names = {path.stem for found in files.values() for path in found}
    if not names:
        where = shown(options.candidates) if options.candidates else "candidates/"
        raise NothingToRun(f"{where} has no candidate for any of these {len(problems)} problems: a candidate lies in a "
                           "folder of its problem's name, or begins with it, as in 15_x/mine.py or 15_x_mine.py")
    for flag, globs in (("--only", options.only), ("--skip", options.skip)):
        for glob in globs:
            if not any(_matches(name, [glob]) for name in names):
                raise InputError(f"{flag} '{glob}' matches no candidate of these problems")
    chosen: dict[Path, list[Candidate]] = {}
    for problem in problems:
        kept = [path for path in files[problem.name] if (not options.only or _matches(path.stem, options.only))
                and not _matches(path.stem, options.skip)]
        chosen[problem.path] = [read_candidate(path) for path in kept]
    return chosen


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, glob[:-3] if glob.endswith(".py") else glob) for glob in globs)


def _one(
    loaded: Loaded, candidates: list[Candidate], options: argparse.Namespace, settings: Settings,
    device: DeviceIdentity | None,
) -> Outcome:
    """One problem judged, or what became of it instead: nothing here ends the suite but the user."""
    problem = loaded.problem
    if problem is None:
        return Outcome(loaded.path, loaded.path.stem, fault=loaded.fault)
    if not candidates:
        return Outcome(loaded.path, problem.name, without_candidate=not (options.only or options.skip))
    try:
        kept = {} if device is None else kept_rows(options.out, problem, candidates, settings, device)
        left = [each for each in candidates if each.name not in kept]
        sources = {each.csv_path for each in kept.values()}
        if not left and len(sources) == 1:
            csv_path = sources.pop()  # a whole earlier run: there is nothing to add to it
        else:
            csv_path = children.judge({
                "problem": problem, "candidates": left, "device": options.device, "settings": settings,
                "out_dir": options.out, "sanitize": options.sanitize, "extras": extras_of(options),
                "kept": tuple(kept.values()), "command": _command(problem, candidates, options),
            }, silent=options.json)
        records = [record for record in read_records(csv_path)
                   if record.role == "baseline" or record.candidate in {each.name for each in candidates}]
        return Outcome(loaded.path, problem.name, tuple(records), csv_path, kept=len(kept))
    except NothingToRun:
        raise  # no such device, or a tool that is not here: the next problem would hear the same
    except HarnessError as error:
        return Outcome(loaded.path, problem.name, fault=str(error))


def _command(problem: Problem, candidates: Sequence[Candidate], options: argparse.Namespace) -> str:
    """What to type to run this problem of the suite by itself."""
    words = ["python", "run.py", str(shown(problem.path))]
    if options.candidates is not None:
        folders = {each.path.parent for each in candidates}
        words += ["--candidates", str(shown(folders.pop() if len(folders) == 1 else options.candidates))]
        if is_suite(options.problem) and any(each.path.parent == options.candidates for each in candidates):
            words += [word for each in candidates for word in ("--only", each.name)]
    for flag, value, default in (("--mode", options.mode, None), ("--device", options.device, "auto"), ("--config", options.config, "default"),
                                 ("--out", str(options.out), "results")):
        words += [flag, value] if value != default else []
    return shlex.join(words + (["--sanitize"] if options.sanitize else []) + extra_words(options))


def _show(options: argparse.Namespace, outcome: Outcome) -> None:
    """The leaderboard of a problem as soon as there is one."""
    if options.json:
        return
    if outcome.kept:
        print(f"{outcome.name}: reused {outcome.kept} of the rows in {shown(outcome.csv_path)}", file=sys.stderr)
    if outcome.fault:
        print(f"{outcome.name}: {outcome.fault}", file=sys.stderr)
    elif outcome.records:
        from harness.leaderboard import render

        command = re.sub(r" --only ('[^']*'|\S+)", "", outcome.records[-1].command or "")
        print(render(
            outcome.records, width=terminal.width_of(sys.stdout), color=terminal.color_wanted(sys.stdout),
            command=command or None, records_path=shown(outcome.csv_path),
        ), end="\n\n", flush=True)


def _report(options: argparse.Namespace, outcomes: Sequence[Outcome]) -> None:
    print(json.dumps(summary_json(outcomes)) if options.json else summary_text(outcomes, terminal.width_of(sys.stdout)))


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.json:
        print(text, file=sys.stderr, flush=True)


def _exit_code(options: argparse.Namespace, outcomes: Sequence[Outcome]) -> int:
    own = [record for each in outcomes for record in each.records if record.role == "candidate"]
    idle = {Status.SKIPPED, Status.COMPILED, Status.BUILD_FAILED}
    if all(record.status in idle for record in own):
        return EXIT_NOTHING_RAN
    failed = any(each.fault for each in outcomes) or any(record.status is not Status.OK for record in own)
    return EXIT_STRICT if options.strict and failed else 0
