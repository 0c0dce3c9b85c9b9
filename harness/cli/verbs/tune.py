"""`run.py tune PROBLEM CANDIDATE`: search the candidate's PARAMETERS and write the best beside it."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.flags.verb_flags import NOT_OF_TUNE
from harness.cli.verbs.serve import open_judges
from harness.device.choice import check_device_name, check_ray, ray_words, require_torch
from harness.model.candidate import Candidate, file_named, find_candidates, read_candidate, values_of
from harness.model.errors import InputError
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM, is_shipped, own
from harness.model.problem import asked_problem
from harness.model.settings import check_one_size, load_settings, typed_flags
from harness.model.verdict import Status
from harness.report import terminal
from harness.report.progress import outcome_text
from harness.report.table import Column, table_text
from harness.sandbox.prestart import prestart

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from harness.report.progress import Progress
    from harness.runs.tuning import Judging, Trial, Tuned

_SHOWN = 10
_OUT = "tuning"  # not among the results: a trial is no run of the problem


def run(options: argparse.Namespace) -> int:
    """Tune one candidate. Returns 0; raises HarnessError when none of its values is ok."""
    check_device_name(options.device)
    check_ray(options)
    for flag in NOT_OF_TUNE:
        if getattr(options, flag.replace("-", "_")):
            raise InputError(f"--{flag} does not go with `tune`", hint="Leave one of the two out")
    if len(options.problem) != 1 or options.problem[0].is_dir():
        raise InputError("`tune` is for one problem", hint="Name one problem file")
    if options.trials < 1:
        raise InputError(f"--trials {options.trials} tries nothing", hint="Type --trials 32")
    settings = load_settings(options.config)
    check_one_size(options, "`tune`")
    problem = replace(asked_problem(options), baseline=None)  # trials are over eager
    if problem.form is not None:
        raise InputError("is another project's problem, whose candidates are not tuned", problem.path)
    if not Path(options.tune).is_file():
        find_candidates(problem.candidate_folders)  # says how to get some where there are none
    # Without what an earlier search has found.
    candidate = read_candidate(file_named(options.tune, problem.candidate_folders), tuned=False)
    if candidate.fault:
        raise InputError(candidate.fault)
    values_of(candidate)
    if is_shipped(candidate.path):
        name = f"my_{candidate.name}"
        hint = f"Type {PROGRAM} new {problem.name} {name} --from {candidate.name}, and tune {name}"
        raise InputError(f"{candidate.name} is shipped, and its values would be written beside it", hint=hint)
    require_torch()
    if not options.ray:
        prestart()
    from harness.report.progress import open_progress
    from harness.runs.tuning import tune, write, yaml_text

    with open_progress(silent=options.json) as progress:
        tuned = tune(problem, candidate, settings, options.trials, progress, _judges(options, progress))
    path = candidate.path.with_suffix(".yaml")
    if tuned.why_not_written is None:
        write(path, yaml_text(candidate, tuned, _command(options)))
    if options.json:
        print(json.dumps(_as_json(candidate, tuned, path)))
    else:
        print("\n".join(_text(options, candidate, tuned, path)))
    return 0


def _judges(options: argparse.Namespace, progress: Progress) -> AbstractContextManager[Judging]:
    """What judges the trials. Raises InputError for a cluster with GPUs of several models: a speedup is one model's."""
    judges = open_judges(options, progress, own(_OUT) if options.out == own("results") else options.out)
    if options.ray:
        from harness.runs.cluster.link import check_one_model

        try:
            check_one_model(judges.models)
        except InputError:
            judges.close()
            raise
    return judges


def _command(options: argparse.Namespace) -> str:
    words = [*PROGRAM.split(), "tune", shown(options.problem[0]), options.tune]
    words += typed_flags(options, "trials", "config", "mode", "candidates", "device")
    return shlex.join(words + ray_words(options))


def _text(options: argparse.Namespace, candidate: Candidate, tuned: Tuned, path: Path) -> list[str]:
    best = tuned.best.record
    lines = [_table(tuned.trials), "",
             f"Best, judged again: {best.parameters}: {terminal.speedup_text(best)} over eager"]
    if tuned.default is tuned.best:
        lines.append("These are its defaults.")
    elif tuned.default is not None:
        record = tuned.default.record
        said = terminal.speedup_text(record) if record.status is Status.OK else outcome_text(record)
        lines.append(f"The defaults, judged again: {said}")
    if tuned.csv_path is not None:
        lines.append(f"Trials: {shown(tuned.csv_path)}")
    if tuned.why_not_written is not None:
        stays = f"; {shown(path)} stays as it was" if path.exists() else ""
        return [*lines, f"Written: nothing, for {tuned.why_not_written}{stays}", *_advice_on(options, tuned)]
    words = [*PROGRAM.split(), shown(options.problem[0]), "--only", candidate.name]
    words += typed_flags(options, "candidates", "device")
    return [*lines, f"Written: {shown(path)}", f"Next: {shlex.join(words)}   judges it with these values"]


def _advice_on(options: argparse.Namespace, tuned: Tuned) -> list[str]:
    """What would tell the best from the defaults, where that is open."""
    if tuned.best is tuned.default or options.config == "rigorous":
        return []
    command = _command(options).replace(f" --config {shlex.quote(options.config)}", "")
    return [f"Next: {command} --config rigorous   measures longer, on a quiet machine"]


def _table(trials: list[Trial]) -> str:
    """The fastest, then the first of those that are not ok."""
    ordered = sorted(trials, key=lambda trial: (trial.speedup is None, -(trial.speedup or 0.0)))[:_SHOWN]
    names = list(ordered[0].values)
    unit, times = terminal.time_column([trial.record.time_us if trial.speedup else None for trial in ordered])
    columns = [Column(name, "right", [str(trial.values[name]) for trial in ordered]) for name in names]
    columns += [
        Column("status", "left", [trial.record.status.value for trial in ordered]),
        Column(f"time ({unit})", "right", times),
        Column("speedup over eager", "left",
               [terminal.speedup_text(trial.record) if trial.speedup else "" for trial in ordered]),
    ]
    left_out = len(trials) - len(ordered)
    return table_text(columns) + (f"\n  … {left_out} more in the CSV" if left_out else "")


def _as_json(candidate: Candidate, tuned: Tuned, path: Path) -> dict[str, object]:
    def plain(trial: Trial) -> dict[str, object]:
        return {"parameters": dict(trial.values), "record": trial.record.to_json()}

    return {
        "candidate": candidate.name, "yaml": None if tuned.why_not_written else shown(path),
        "why_not_written": tuned.why_not_written, "csv": tuned.csv_path and shown(tuned.csv_path),
        "best": plain(tuned.best), "default": tuned.default and plain(tuned.default),
        "trials": list(map(plain, tuned.trials)), "again": list(map(plain, tuned.again)),
    }
