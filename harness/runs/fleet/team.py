"""The devices of one team in a run, of one model, PyTorch and CUDA: their builds, entries to judge, and results."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.judge.build_pool import Builds
from harness.judge.run import RunRequest, RunResult, ranked
from harness.judge.work_queue import WorkQueue
from harness.judge.worker_prestart import is_slow_to_start
from harness.model.baselines import BASELINES, Baseline, baselines_for
from harness.model.candidate import Candidate
from harness.model.device_limits import limits_of
from harness.model.errors import HarnessError
from harness.model.verdict import ReasonCode, Status
from harness.report.progress import Progress
from harness.results.record import FIELDS, Record
from harness.results.writer import RunFiles, device_slug
from harness.runs.fleet.device_judge import Delivery

# What was measured of a device at some time and says nothing of a row that was not.
_OF_THE_MOMENT = "sm_mhz mem_mhz watts celsius throttle other_processes canary_gbps canary_tflops".split()
_REACH = 256  # of what is left so many are looked at for one that is ready: builds are begun in this order


def second_try(why: str) -> str:
    """Return what the row of a candidate says that was lost once, with its judge or its build."""
    return f"judged at a second try: {why}"


def twice(first: str, second: str) -> str:
    """Return the reason of a candidate that was lost twice."""
    return f"lost twice while it was judged, and not tried a third time: {first}; {second}"


def unlike(device: DeviceIdentity, others: Iterable[DeviceIdentity]) -> str | None:
    """Return in what versions `device` differs from `others` of its model, in words; None where it does not."""
    alike = [each for each in others if (each.kind, each.name) == (device.kind, device.name)]
    differences = []
    for name in ("driver", "torch", "cuda"):
        own = getattr(device, name)
        if versions := {getattr(each, name) for each in alike} - {own}:
            differences.append(f"{name} {own} where another {device.name} has {', '.join(sorted(map(str, versions)))}")
    return "; ".join(differences) or None


class Team(AbstractContextManager):
    """Judges known by their numbers, and the `builds` of what is left for them, its own from now on; use it in a `with`."""

    def __init__(self, request: RunRequest, device: DeviceIdentity, utc: str, builds: Builds) -> None:
        self._request, self._limits = request, limits_of(device.kind)
        problem = request.problem
        self._entries: list[Baseline | Candidate] = [*baselines_for(problem, device.kind), *request.candidates]
        own = next((place for place, each in enumerate(self._entries) if each is BASELINES["eager"]), None)
        self._queue = WorkQueue([place for place in range(len(self._entries)) if place != own], own, _REACH)
        self._files = RunFiles.create(request.out_dir, problem.name, device_slug(device.name, device.kind), utc)
        for each in request.kept:
            self._files.append(each.record, each.samples())
        self._last: dict[int, Record] = {}
        self._lost_once: dict[int, str] = {}  # over which entries a judge was lost, and how
        self._devices: dict[int, DeviceIdentity] = {}
        self._starter: int | None = None  # the judge that starts early what takes seconds to start, and judges it last
        self._by_name = {each.name: each for each in request.candidates}
        self._builds = builds

    def __exit__(self, *_: object) -> None:
        self._builds.close()
        self._files.remove_if_empty()

    @property
    def judges(self) -> Collection[int]:
        return self._queue.judges

    @property
    def has_judged(self) -> bool:
        return bool(self._last)

    @property
    def is_over(self) -> bool:
        return self._queue.is_over

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is being built any more, or for now."""
        return self._builds.is_idle

    @property
    def _is_all_built(self) -> bool:
        return self._builds.is_idle and not self._builds.is_paused

    def pause(self, is_paused: bool) -> None:
        """Have no build begin, or go on; on a CPU nothing is judged before all are built."""
        if not self._limits.is_host and is_paused != self._builds.is_paused:
            self._builds.is_paused = is_paused

    def join(self, number: int, device: DeviceIdentity) -> None:
        """A device of this model is open."""
        self._devices[number] = device
        self._queue.join(number)

    def next(self, number: int) -> Delivery | None:
        """What a free judge judges now, with its build; None while nothing is ready."""
        if self._limits.is_host and not self._builds.is_idle:
            return None  # compilers would take the very cores that are about to be timed
        own = self._request.problem.baseline
        if own is not None and not self._builds.is_ready(own):
            return None  # each judge judges it after its control, and holds all else against it
        if self._starter not in self._queue.judges:
            self._starter = number

        def is_due(place: int) -> bool:
            # What is slow to start comes once all is built: a build that ends meanwhile would wait for it.
            is_its_turn = not self._is_slow(place) or (number == self._starter and self._is_all_built)
            return is_its_turn and self._is_ready(place)

        job = self._queue.next(number, is_due, time.monotonic(), can_wait=self._is_slow)
        if job is None:
            return None
        early = filter(self._is_slow, self._queue.left) if number == self._starter else ()
        entries = {place: self._entries[place] for place in (job.entry, job.following, *early) if place is not None}
        named = {place: each if isinstance(each, Candidate) else each.name for place, each in entries.items()}
        wanted = [*(self._entries[place] for place in (job.entry, job.following) if place is not None), own]
        sound = [each for each in wanted if isinstance(each, Candidate) and each.fault is None]
        return Delivery(job, named, {each.path: self._builds.result(each) for each in sound}, self._is_all_built)

    def add(self, number: int, record: Record, samples: Mapping[str, Any]) -> str | None:
        """Write a record down; its build is needed no more. Returns None, or one sentence when the disk refused."""
        judged = self._by_name.get(record.candidate) if record.role == "candidate" else None
        if judged is not None:
            self._builds.give_up(judged)
        entry = self._queue.in_hand(number)
        if entry is not None and self._entries[entry].name == record.candidate:
            self._queue.done(number)
            if entry in self._lost_once:
                record = record.warned(second_try(self._lost_once[entry]))
        self._last[number] = record
        return self._files.append(record, samples)

    def lose(self, number: int, why: str) -> Record | None:
        """A judge is gone. What it had in hand is judged again elsewhere; returns its row where that has been done."""
        return self._tried(self._queue.lose(number), number, why)

    def unsent(self, number: int, why: str) -> list[Record]:
        """What a judge was given is made again, since a build is gone; returns the rows of what that befell before."""
        entries = self._queue.take_back(number)
        for each in (*map(self._entries.__getitem__, entries), self._request.problem.baseline):
            if isinstance(each, Candidate):
                self._builds.give_up(each)
                self._builds.add([each])
        return [row for entry in entries if (row := self._tried(entry, number, why)) is not None]

    def _tried(self, entry: int | None, number: int, why: str) -> Record | None:
        """Have `entry` be judged again, or return its row where it was tried twice."""
        if entry is None or self._entries[entry] is BASELINES["eager"]:
            return None  # each judge has a control of its own
        if entry in self._lost_once:
            return self._lost(entry, twice(self._lost_once[entry], why), self._devices[number].uuid)
        self._lost_once[entry] = why
        self._queue.again(entry)
        return None

    def give_up(self, faults: Sequence[HarnessError]) -> None:
        """Give every entry that no judge is left for its row."""
        for entry in self._queue.left:
            self._lost(entry, f"{faults[-1] if faults else 'no device is left'}; run it again", None)

    def finish(self, progress: Progress) -> RunResult:
        """Rank what there is."""
        return ranked(self._files, self._request.problem, progress)

    def _is_slow(self, place: int) -> bool:
        return is_slow_to_start(self._entries[place])

    def _is_ready(self, place: int) -> bool:
        entry = self._entries[place]
        return not isinstance(entry, Candidate) or entry.fault is not None or self._builds.is_ready(entry)

    def _lost(self, place: int, why: str, uuid: str | None) -> Record | None:
        """The row of an entry whose device is gone; what all rows of this model share is from another's row."""
        beside = next(iter(self._last.values()), None)
        if beside is None:
            return None
        entry = self._entries[place]
        is_candidate = isinstance(entry, Candidate)
        kept = {
            each.name: getattr(beside, each.name) for each in FIELDS
            if each.group in ("identity", "device", "sandbox") and each.name not in _OF_THE_MOMENT
        }
        row = Record(**{
            **kept, "uuid": uuid, "candidate": entry.name, "role": "candidate" if is_candidate else "baseline",
            "source_hash": entry.source_hash if is_candidate else None,
            "parameters": entry.parameters if is_candidate else None,
            "language": entry.language if is_candidate else "torch",
            "status": Status.SKIPPED, "reason_code": ReasonCode.DEVICE_LOST, "reason": why,
        })
        self._files.append(row)
        return row
