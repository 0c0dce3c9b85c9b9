"""`run.py PROBLEM`: judge the candidates of a problem and print the leaderboard."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import Any

from harness.build.toolchain import check_architectures, find_toolchain, parse_architectures
from harness.cli.diagnosis.host import advice_on_bytecode
from harness.device.choice import (
    check_device_name, check_device_names, check_ray, open_context_early, ray_words, require_torch,
)
from harness.model.candidate import find_candidates, rivals_of
from harness.model.errors import NothingToRun
from harness.model.files.text_files import shown
from harness.model.paths import PROGRAM
from harness.model.problem import asked_problem
from harness.model.settings import check_one_size, extras_of, load_settings, typed_flags
from harness.results.own_baseline import fault_of
from harness.sandbox.prestart import prestart, uncollected
from harness.tools.sanitizer.compute_sanitizer import require_tool

EXIT_STRICT, EXIT_HARNESS_FAILED, EXIT_NOTHING_RAN = 1, 1, 4


def run(options: argparse.Namespace) -> int:
    """Validate everything that needs no torch first, then judge. Returns the exit code."""
    check_device_name(options.device)
    check_ray(options)
    names = check_device_names(options.devices, options.device) if options.devices else (options.device,)
    problem = asked_problem(options)
    settings = load_settings(options.config)
    if options.devices or options.ray:
        check_one_size(options, "--ray" if options.ray else "--devices")
    candidates = find_candidates(problem.candidate_folders, options.only, options.skip, problem.form)
    candidates = rivals_of(problem.baseline, candidates)
    if options.sanitize and not options.ray:
        require_tool("cpu" if set(names) == {"cpu"} else options.device)
    archs = _architectures(options)

    require_torch()
    if options.ray:
        return _reported(options, _judged_on_cluster(options, problem, candidates, settings, archs))
    prestart()
    if not options.devices:
        open_context_early(options.device)  # not before: a mistake would be told half a second later, with the GPU put away
    from harness.device.choice import devices_of
    from harness.report.progress import open_progress

    with open_progress(silent=options.json) as progress:
        with uncollected():
            from harness.judge.run import RunRequest
            from harness.runs.fleet.fleet import run as judge_all  # imports torch

        request = RunRequest(problem, candidates, options.device, settings, options.out, options.sanitize,
                             _command(options), archs=archs, extras=extras_of(options), wait_s=options.wait)
        if (advice := advice_on_bytecode()) is not None:
            progress.note(advice)
        devices = devices_of(names, progress.note) if options.devices else names
        results = judge_all(request, devices, progress)
    return _reported(options, results)


def _judged_on_cluster(options, problem, candidates, settings, archs) -> list[Any]:
    """What became of the candidates on the devices of the cluster. Raises HarnessError."""
    from harness.report.progress import open_progress
    from harness.runs.cluster.link import connected

    with connected(options.ray, options.device, options.accelerator) as link, open_progress(silent=options.json) as progress:
        from harness.judge.run import RunRequest
        from harness.runs.cluster.run import run as judge_all  # imports torch

        return judge_all(RunRequest(
            problem, candidates, link.kind, settings, options.out, options.sanitize, _command(options), archs=archs,
            extras=extras_of(options), wait_s=options.wait,
        ), link, progress)


def _reported(options: argparse.Namespace, results) -> int:
    """Print what became of the candidates. Returns the exit code; raises HarnessError where none could be run."""
    from harness.judge.run import nothing_ran

    records = [record for result in results for record in result.records]
    if options.json:
        from harness.report.sizes_table import sizes_json

        paths = [str(result.csv_path) for result in results]  # several where GPUs are of several models
        print(json.dumps({"csv": paths[0], "csvs": paths, "records": [each.to_json() for each in records],
                          "together": sizes_json(records)}))
    else:
        from harness.report import terminal
        from harness.report.leaderboard import render

        command, fitting = _command(options), terminal.fitting(sys.stdout)
        print("\n\n".join(render(result.records, command=command, records_path=shown(result.csv_path), **fitting)
                          for result in results))
    own = [record for record in records if record.role == "candidate"]
    if any(record.status.value == "harness_error" for record in records):
        return EXIT_HARNESS_FAILED
    if nothing_ran(records):
        if options.json:
            return EXIT_NOTHING_RAN
        what = "was built" if all(each.status.value == "build_failed" for each in own) else "could be run here"
        raise NothingToRun(f"No candidate {what}; the lines under the table say why")
    if (fault := fault_of(records)) is not None:
        raise fault
    return EXIT_STRICT if options.strict and any(record.status.value != "ok" for record in own) else 0


def _architectures(options: argparse.Namespace) -> tuple[str, ...]:
    """What --arch names. Raises InputError for what is no architecture, or none of this nvcc's."""
    if options.arch is None:
        return ()
    archs = parse_architectures(options.arch)
    if (nvcc := find_toolchain(None).nvcc_path) is not None:
        check_architectures(archs, nvcc)
    return archs


def _command(options: argparse.Namespace) -> str:
    """What to type to run this problem again in the same way, all its candidates."""
    flags = ("candidates", "mode", "baselines", "baseline", "sizes", "devices" if options.devices else "device",
             "config", "out", "arch", "sanitize", "energy", "extra_times")
    return shlex.join([*PROGRAM.split(), shown(options.problem[0]), *typed_flags(options, *flags), *ray_words(options)])
