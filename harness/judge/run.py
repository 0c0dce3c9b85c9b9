"""The story of a run: open the device → build all candidates → judge each → record each → rank.

Builds go on while a GPU already judges what is ready, and begin while another run has it. Whatever a candidate does
costs its own record; only a device that no longer answers ends the run early, and then what was won is on disk.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.device.backend import Backend
from harness.device.choice import open_backend
from harness.device.identity import DeviceIdentity
from harness.device.lock import DeviceLock
from harness.judge.build_pool import BuildPool
from harness.judge.device_run import DeviceRun
from harness.judge.sanitize import open_examiner
from harness.model.candidate import Candidate
from harness.model.errors import InputError
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.model.verdict import NEVER_LAUNCHED
from harness.report.progress import Progress
from harness.results.ranking import rank_of
from harness.results.record import Record
from harness.results.reuse import Kept
from harness.results.writer import RunFiles, device_slug, utc_now
from harness.sandbox.sandbox_choice import strongest_sandbox, why_no_sandbox


@dataclass(frozen=True)
class RunRequest:
    """What the user asked for. `sanitize` puts kernels under compute-sanitizer, `command` is what to type to run it again,
    `archs` are for compiling without a GPU, `extras` is what `judge.extras` measures besides. `wait_s` is how long to wait
    for another run (None: as `device.lock` says). `kept` records stand for candidates which devices like theirs do not
    judge again.
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

    def left_for(self, device: DeviceIdentity) -> RunRequest:
        """Return what of it devices like `device` are to judge: they keep rows of their own alone."""
        kept = [each for each in self.kept if each.record.team == device.team]
        names = {each.record.candidate for each in kept}
        return replace(self, kept=kept, candidates=[each for each in self.candidates if each.name not in names])


@dataclass(frozen=True)
class RunResult:
    """All records with their ranks, and the file they are in."""

    records: list[Record]
    csv_path: Path


Judging = Callable[[RunRequest, Progress], RunResult]


def run(request: RunRequest, progress: Progress, backend: Backend | None = None) -> RunResult:
    """Judge all that `request` names, on `backend` if given. Raises HarnessError: the user's fault or the machine's."""
    gc.collect()  # what an earlier run of this process held goes now, and not while a queue of this one is held
    if backend is None:
        progress.note("opening the device")
        backend = open_backend(request.device)
    request = request.left_for(backend.identity)
    problem, settings = request.problem, request.settings
    if request.archs and not backend.limits.is_host:
        raise InputError("--arch is for compiling without a GPU, and this run has one", hint="Add --device cpu")
    examiner = open_examiner(backend) if request.sanitize else None
    note_no_sandbox(progress)
    utc = utc_now()
    files = RunFiles.create(request.out_dir, problem.name, device_slug(backend.identity.name, backend.kind), utc)
    for each in request.kept:
        files.append(each.record, each.samples())
    device_lock = DeviceLock.on(backend, progress, request.wait_s)
    try:
        for at_one in problem.each_size():
            if problem.more_sizes:
                progress.note(f"at {sizes_text(at_one.timed_sizes(backend.kind))}")
            with BuildPool(
                at_one, request.candidates, backend, settings, request.archs, gently=device_lock.is_another_runs
            ) as build_pool:
                if backend.limits.is_host:
                    # Compilers would take the very cores that are about to be timed.
                    progress.note("building all candidates before the CPU is timed")
                    build_pool.wait_for_builds(progress.note)
                with device_lock.held(lambda: build_pool.is_quiet):
                    device_run = DeviceRun(
                        at_one, settings, backend, build_pool, files, progress, utc, examiner, request.command,
                        request.extras,
                    )
                    device_run.run(request.candidates)
            del device_run  # its references, before those of the next sizes are made
            backend.release_memory()
    finally:
        files.remove_if_empty()  # of a device that did not come free, say
    return ranked(files, problem, progress)


def ranked(files: RunFiles, problem: Problem, progress: Progress) -> RunResult:
    """Give the records of a run their ranks, as its last act."""
    records = rank_of(files.records, problem)
    trouble = files.finish(records)
    if trouble:
        progress.note(trouble)
    return RunResult(records, files.csv_path)


def note_no_sandbox(progress: Progress) -> None:
    """Tell the user where nothing but a process group stands between the machine and candidates."""
    lacks = why_no_sandbox(strongest_sandbox())
    if lacks is not None:
        progress.note(lacks)


def nothing_ran(records: Sequence[Record]) -> bool:
    """Whether no candidate came as far as a launch."""
    own = [record for record in records if record.role == "candidate"]
    return bool(own) and all(record.status in NEVER_LAUNCHED for record in own)
