"""The devices of one model in a run: their builds, the entries still to be judged, and their one file of results."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.judge.build_pool import Builds
from harness.judge.run import RunRequest, RunResult
from harness.model.baselines import BASELINES, Baseline, baselines_for
from harness.model.candidate import Candidate
from harness.model.device_limits import limits_of
from harness.model.errors import HarnessError
from harness.model.verdict import ReasonCode, Status
from harness.report.progress import Progress
from harness.results.ranking import rank
from harness.results.record import FIELDS, Record
from harness.results.writer import RunFiles, device_slug
from harness.runs.fleet.device_judge import Delivery
from harness.runs.fleet.work_queue import Job, Sharing

# What was measured of a device at some time and says nothing of a row that was not.
_OF_THE_MOMENT = (
    "sm_mhz", "mem_mhz", "watts", "celsius", "throttle", "other_processes", "canary_gbps", "canary_tflops",
)


class Team:
    """Judges that are known by their numbers, and the `builds` of their candidates, which are its own from now on; use
    it in a `with`.
    """

    def __init__(self, request: RunRequest, device: DeviceIdentity, utc: str, builds: Builds) -> None:
        self._request, self._limits = request, limits_of(device.kind)
        problem = request.problem
        self._entries: list[Baseline | Candidate] = [*baselines_for(problem, device.kind), *request.candidates]
        own = next((place for place, each in enumerate(self._entries) if each is BASELINES["eager"]), None)
        self._sharing = Sharing([place for place in range(len(self._entries)) if place != own], own)
        self._files = RunFiles.create(request.out_dir, problem.name, device_slug(device.name, device.kind), utc)
        for each in request.kept:
            self._files.append(each.record, each.samples())
        self._last: dict[int, Record] = {}
        self._devices: dict[int, DeviceIdentity] = {}
        self._by_name = {each.name: each for each in request.candidates}
        self._builds = builds

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self._builds.close()
        self._files.remove_if_empty()

    @property
    def judges(self) -> Collection[int]:
        return self._sharing.judges

    @property
    def is_over(self) -> bool:
        return self._sharing.is_over or not self._sharing.judges

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is being built any more."""
        return self._builds.is_idle

    def join(self, number: int, device: DeviceIdentity) -> None:
        """A device of this model is open."""
        self._devices[number] = device
        self._sharing.join(number)

    def unlike(self, device: DeviceIdentity) -> str | None:
        """Return in what software `device` differs from those that joined before, in words; None where it does not."""
        for before in self._devices.values():
            pairs = ((name, getattr(before, name), getattr(device, name)) for name in ("driver", "torch", "cuda"))
            different = [f"{name} {new} where another has {old}" for name, old, new in pairs if old != new]
            if different:
                return ", ".join(different)
        return None

    def next(self, number: int) -> Delivery | None:
        """What a free judge judges now, with its build; None while nothing is ready."""
        if self._limits.is_host and not self._builds.is_idle:
            return None  # compilers would take the very cores that are about to be timed
        own = self._request.problem.baseline
        if own is not None and not self._builds.is_ready(own):
            return None  # each judge judges it after its control, and holds all else against it
        job = self._sharing.next(number, self._is_ready, time.monotonic())
        if job is None:
            return None
        entries = {place: self._entries[place] for place in (job.entry, job.following) if place is not None}
        named = {place: each if isinstance(each, Candidate) else each.name for place, each in entries.items()}
        return Delivery(job, named, self._builds_for(job), self._builds.is_idle)

    def add(self, number: int, record: Record, samples: Mapping[str, Any]) -> str | None:
        """Write a record down; its build is needed no more. Returns None, or one sentence when the disk refused."""
        judged = self._by_name.get(record.candidate) if record.role == "candidate" else None
        if judged is not None:
            self._builds.give_up(judged)
        self._last[number] = record
        return self._files.append(record, samples)

    def lose(self, number: int, why: str) -> Record | None:
        """A judge is gone. Returns the row of what it had in hand, if it had anything."""
        entry = self._sharing.lose(number)
        return None if entry is None else self._lost(entry, why, self._devices[number].uuid)

    def give_up(self, faults: Sequence[HarnessError]) -> None:
        """Give every entry that no judge is left for its row. Raises the first fault where nothing was judged."""
        if not self._last and self._sharing.left and faults:
            raise faults[0]
        for entry in self._sharing.left:
            self._lost(entry, str(faults[-1]) if faults else "no device is left", None)

    def finish(self, progress: Progress) -> RunResult:
        """Rank what there is."""
        problem = self._request.problem
        records = rank(self._files.records, problem.kinds, problem.accuracy.precision_class)
        trouble = self._files.finish(records)
        if trouble:
            progress.note(trouble)
        return RunResult(records, self._files.csv_path)

    def _is_ready(self, place: int) -> bool:
        entry = self._entries[place]
        return not isinstance(entry, Candidate) or entry.fault is not None or self._builds.is_ready(entry)

    def _builds_for(self, job: Job) -> dict[Any, Any]:
        wanted = [self._entries[place] for place in (job.entry, job.following) if place is not None]
        wanted.append(self._request.problem.baseline)
        return {
            each.path: self._builds.result(each)
            for each in wanted if isinstance(each, Candidate) and each.fault is None
        }

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
            "status": Status.SKIPPED, "reason_code": ReasonCode.DEVICE_LOST, "reason": f"{why}; run it again",
        })
        self._files.append(row)
        return row
