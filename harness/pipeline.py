"""The story of a run: open the device → build all candidates → judge each → record each → rank.

Builds go on while a GPU already judges what is ready, and begin while another run has it. Whatever a candidate does
costs its own record; only a device that no longer answers ends the run early, and then what was won is on disk.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness.candidate import Candidate
from harness.contest import Contest
from harness.device.bench import Bench
from harness.device.choose import open_bench
from harness.errors import InputError
from harness.problem import Problem
from harness.records.earlier import Kept
from harness.records.ranking import rank
from harness.records.schema import Record
from harness.records.sizes import sizes_text
from harness.records.writer import RunFiles, device_slug
from harness.referee.sanitizing import open_examiner
from harness.report.progress import Progress
from harness.sandbox.walls import best_wall, why_no_wall
from harness.sanitizer.tool import require_tool
from harness.settings import Settings
from harness.turn import Turn
from harness.verdict import NEVER_LAUNCHED
from harness.workshop import Workshop


@dataclass(frozen=True)
class RunRequest:
    """What the user asked for: a problem, the candidates chosen, a device by name, settings, where results go,
    whether kernels are to be put under compute-sanitizer, what to type to run the problem again in the same way, the
    architectures to compile for without a GPU, what is to be measured besides (`referee.extras`), and for how long a
    device that another run has is waited for (None: as long as `turn` says).

    `kept` are records of an earlier run that stand for candidates which are not judged again.
    """

    problem: Problem
    candidates: Sequence[Candidate]
    device: str
    settings: Settings
    out_dir: Path
    sanitize: bool = False
    command: str | None = None
    kept: Sequence[Kept] = ()
    archs: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    wait_s: float | None = None


@dataclass(frozen=True)
class RunResult:
    """All records with their ranks, and the file they are in."""

    records: list[Record]
    csv_path: Path


def run(request: RunRequest, progress: Progress, bench: Bench | None = None) -> RunResult:
    """Judge everything that `request` names, on `bench` where one is open. Raises HarnessError for what is the user's or
    the machine's fault.
    """
    problem, settings = request.problem, request.settings
    gc.collect()  # what an earlier run of this process held goes now, and not while a queue of this one is held
    if bench is None:
        progress.note("opening the device")
        bench = open_bench(request.device)
    if request.archs and not bench.limits.is_host:
        raise InputError("--arch is for compiling without a GPU, and this run has one", hint="Add --device cpu")
    examiner = open_examiner(require_tool(bench.kind), bench, best_wall()) if request.sanitize else None
    note_no_wall(progress)
    utc = datetime.now(timezone.utc).isoformat(timespec="seconds")
    files = RunFiles.create(request.out_dir, problem.name, device_slug(bench.identity.name, bench.kind), utc)
    for each in request.kept:
        files.append(each.record, each.samples())
    turn = Turn.on(bench, progress, request.wait_s)
    try:
        for at_one in problem.each_size():
            if problem.more_sizes:
                progress.note(f"at {sizes_text(at_one.timed_sizes(bench.kind))}")
            with Workshop(
                at_one, request.candidates, bench, settings, request.archs, gently=turn.is_another_runs
            ) as workshop:
                if bench.limits.is_host:
                    # Compilers would take the very cores that are about to be timed.
                    progress.note("building all candidates before the CPU is timed")
                    workshop.wait_for_builds(progress.note)
                with turn.held(lambda: workshop.is_quiet):
                    contest = Contest(
                        at_one, settings, bench, workshop, files, progress, utc, examiner, request.command,
                        request.extras,
                    )
                    contest.run(request.candidates)
            del contest  # its references, before those of the next sizes are made
            bench.release_memory()
    finally:
        files.remove_if_empty()  # of a device that did not come free, say
    records = rank(files.records, problem.kinds, problem.accuracy.precision_class)
    trouble = files.finish(records)
    if trouble:
        progress.note(trouble)
    return RunResult(records, files.csv_path)


def note_no_wall(progress: Progress) -> None:
    """Tell the user where nothing but a process group stands between the machine and candidates."""
    lacks = why_no_wall(best_wall())
    if lacks is not None:
        progress.note(lacks)


def nothing_ran(records: Sequence[Record]) -> bool:
    """Whether no candidate came as far as a launch."""
    own = [record for record in records if record.role == "candidate"]
    return bool(own) and all(record.status in NEVER_LAUNCHED for record in own)
