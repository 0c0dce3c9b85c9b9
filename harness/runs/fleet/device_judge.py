"""One judge of several: a process with one GPU and a device run to itself. It asks the parent for entry after entry and
sends each record back; what a candidate does to it costs the entry that it had in hand. Both ends are trusted, so
objects go over the pipe; records go as the plain values of the results.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.build.product import Build
from harness.judge.work_queue import Job
from harness.model.baselines import BASELINES, Baseline
from harness.model.candidate import Candidate
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.report.progress import Progress
from harness.results.record import Record
from harness.results.writer import jsonable
from harness.runs.fleet.judge_process import errors_sent
from harness.sandbox.prestart import prestart, uncollected


@dataclass(frozen=True)
class Assignment:
    """What all judges of a run are told at the start. `device` is as this process counts; whoever asks `has_lock` where
    it holds the device's lock itself, and `is_remote` where it is on another machine: it cannot tell of this sandbox.
    """

    problem: Problem
    settings: Settings
    device: str
    utc: str
    command: str | None
    sanitize: bool
    archs: tuple[str, ...]
    extras: tuple[str, ...]
    wait_s: float | None = None
    has_lock: bool = False
    is_remote: bool = False


@dataclass(frozen=True)
class Delivery:
    """A job with its entries, candidates or the names of baselines, and those that are to be started long before their
    turn; the builds that it needs by the file of the candidate; and whether no compiler runs any more.
    """

    job: Job
    entries: Mapping[int, str | Candidate]
    builds: Mapping[Path, Build]
    quiet: bool


class DeliveredBuilds:
    """Stands where a run has its queue of builds: the parent's, as far as they have been sent."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._builds: dict[Path, Build] = {}
        self.is_idle = self.is_paused = False
        self.waiting = 0

    def take(self, builds: Mapping[Path, Build], quiet: bool) -> None:
        """These have come, and whether no compiler runs any more."""
        self._builds.update(builds)
        self.is_idle = quiet

    def wait_until_idle(self) -> None:
        """Ask the parent, who answers when nothing is being built any more; where this `is_paused`, it begins nothing more until
        it has the record of the entry in hand.
        """
        if self.is_paused or not self.is_idle:  # others may have been begun since it was said
            self._pipe.send(("until quiet", self.is_paused))
            self._pipe.recv()
            self.is_idle = True

    def result(self, candidate: Candidate) -> Build:
        return self._builds[candidate.path]

    def is_ready(self, candidate: Candidate) -> bool:
        return candidate.path in self._builds

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Who asks for them has sent their builds."""

    def give_up(self, candidate: Candidate) -> None:
        """Only what was judged is given up, and its build is small."""

    def wait_for_one(self, candidates: Sequence[Candidate], timeout_s: float | None = None) -> None:
        """Who is given an entry to judge was given its build."""

    def close(self) -> None:
        """The queue is the parent's."""


class PipedProgress(Progress):
    """Progress that the parent tells, with the device's name before it; and it stands in the place of a run's files."""

    def __init__(self, pipe: Connection) -> None:
        super().__init__(sys.stderr)
        self._pipe = pipe

    def status(self, candidate: str, text: str) -> None:
        self._pipe.send(("stage", candidate, text))

    def done(self, record: Record, device: str | None = None) -> None:
        """The record says it all."""

    def note(self, text: str) -> None:
        self._pipe.send(("note", text))

    def append(self, record: Record, samples: Mapping[str, Any] | None = None) -> None:
        """Have the parent write a record down."""
        self._pipe.send(("record", record.to_json(), jsonable(samples or {})))


def main(descriptor: int) -> None:
    """Take part in a run until the parent has nothing more, or is gone."""
    pipe = Connection(descriptor)
    with errors_sent(pipe):
        with uncollected():
            import harness.judge.device_run  # noqa: F401  and PyTorch with it, before there is anything to do

        _take_part(pipe, pipe.recv())


def _take_part(pipe: Connection, assigned: Assignment) -> None:
    prestart()
    from harness.device.choice import open_backend
    from harness.device.lock import alone_on
    from harness.judge.build_pool import BuildPool
    from harness.judge.device_run import DeviceRun
    from harness.judge.run import note_no_sandbox
    from harness.judge.sanitize import open_examiner

    progress, builds = PipedProgress(pipe), DeliveredBuilds(pipe)
    backend = open_backend(assigned.device)
    pipe.send(("device", asdict(backend.identity)))
    if assigned.is_remote:
        note_no_sandbox(progress)
    examiner = open_examiner(backend) if assigned.sanitize else None
    problem, settings = assigned.problem, assigned.settings
    build_pool = BuildPool(problem, [], backend, settings, assigned.archs, builds)
    if backend.limits.is_host:  # whose compilers would take the very cores
        build_pool.wait_until_quiet()
    # On a CPU, where all would share the one lock, the parent has it by now.
    lock = nullcontext() if assigned.has_lock else alone_on(backend, progress, assigned.wait_s)
    with build_pool, lock:
        device_run = DeviceRun(
            problem, settings, backend, build_pool, progress, progress, assigned.utc, examiner, assigned.command,
            assigned.extras,
        )
        device_run.judge_each(_asked_for(pipe, builds, device_run))


def _asked_for(
    pipe: Connection, builds: DeliveredBuilds, device_run: Any
) -> Iterator[tuple[Baseline | Candidate, Baseline | Candidate | None]]:
    """Entry after entry as the parent gives them out, each with the one that follows it, if that is known. One that was
    named before is the same object when its turn comes: its worker has been started by it.
    """
    known: dict[int, Baseline | Candidate] = {}
    while True:
        pipe.send(("free", device_run.lost))
        delivery = pipe.recv()
        if delivery is None:
            return
        builds.take(delivery.builds, delivery.quiet)
        known = {
            number: known.get(number) or (BASELINES[entry] if isinstance(entry, str) else entry)
            for number, entry in delivery.entries.items()
        }
        device_run.start_early(known.values())
        yield known[delivery.job.entry], known.get(delivery.job.following)
