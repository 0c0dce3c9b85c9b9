"""Who judges which job on a cluster, as jobs and devices come and go: the thread behind `Referees`.

The queue is that of a run of one machine. A device that is free takes the next job that is built, first one whose problem
it has had already. A job goes to the devices of one model (all H100s, say), for which it is built.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.judge.work_queue import WorkQueue
from harness.model.candidate import Candidate
from harness.model.errors import HarnessError
from harness.model.files.text_files import shown
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.model.verdict import ReasonCode, Status
from harness.report.progress import Progress, name_on
from harness.results.record import Record
from harness.results.writer import utc_now
from harness.runs.cluster.answer_files import AnswerFiles
from harness.runs.cluster.builds import ClusterBuilds
from harness.runs.cluster.link import Link
from harness.runs.cluster.parcel import packed_candidate, packed_problem
from harness.runs.cluster.ray_executors import RayExecutors
from harness.runs.fleet.judge_process import error_of
from harness.runs.fleet.team import second_try, twice, unlike
from harness.runs.referee import Evaluation

AHEAD = 8  # jobs for each device that are under way at once, so that builds are ready when it is free
_POLL_S, _LONGEST_POLL_S = 0.05, 0.2  # for new jobs and builds: the longer, the longer nothing has come
_MOST_PACKED = 64
_WARM = 4  # problems that a judge keeps warm, as `runs.referee.Referee` does


@dataclass(eq=False)
class Asked:
    """A job as it is shared out, and the future of its answer."""

    problem: Problem
    candidate: Candidate
    settings: Settings
    check_only: bool
    budget_s: float | None
    key: Hashable  # of the problem, as it is warm or not
    answer: Future[Evaluation] = field(default_factory=Future)
    lost: str | None = None  # how a first device was lost over it

    @property
    def build_key(self) -> Hashable:
        """What the builds are shared by: the problem, and how long one may take."""
        return self.key, self.budget_s


@dataclass(eq=False)
class _Model:
    """The devices of one model, PyTorch and CUDA: who judges what, and the builds for them by the job's `build_key`."""

    device: DeviceIdentity
    node: str
    queue: WorkQueue[int] = field(default_factory=WorkQueue)
    builds: dict[Hashable, ClusterBuilds] = field(default_factory=dict)
    ready: set[int] = field(default_factory=set)  # jobs that are built and that nobody has
    jobs: int = 0  # that are to be judged here and were not yet

    @property
    def share(self) -> float:
        """How many jobs there are for each device."""
        return self.jobs / max(1, len(self.queue.judges))


class Dispatcher:
    """Has jobs judged at `places`, in a thread of its own, until it is closed."""

    def __init__(self, link: Link, places: RayExecutors, progress: Progress, files: AnswerFiles) -> None:
        self._link, self._places, self._progress, self._files = link, places, progress, files
        self._lock = threading.Lock()
        self._new: deque[tuple[int, Asked]] = deque()
        self._count = 0
        self._fault: HarnessError | None = None
        self._why_none: HarnessError | None = None  # why there may be no device
        self._is_over = False
        self._asked: dict[int, Asked] = {}  # what has come and was not answered, by its number
        self._where: dict[int, _Model] = {}  # by the job
        self._models: dict[Hashable, _Model] = {}
        self._devices: list[DeviceIdentity] = []
        self._model_of: dict[int, _Model] = {}  # by the place
        self._warm: dict[int, OrderedDict[Hashable, None]] = {}  # keys of problems, by the place
        self._in_hand: dict[int, int] = {}
        self._free: set[int] = set()
        self._until_quiet: set[int] = set()
        self._doubting: set[int] = set()  # these, until they have judged: each doubts a clock
        self._packed: OrderedDict[Hashable, str] = OrderedDict()  # what jobs share as JSON, by its key
        self._thread = threading.Thread(target=self._work, name="referees", daemon=True)
        self._thread.start()

    @property
    def devices(self) -> int:
        """How many devices judge now."""
        return len(self._model_of)

    def put(self, asked: Asked) -> Future[Evaluation]:
        """Have a job be judged. Raises HarnessError once there are no devices, or it is closed."""
        asked.answer.set_running_or_notify_cancel()  # nobody who waits for it can take it back
        with self._lock:
            if self._fault is not None:
                raise self._fault
            self._new.append((self._count, asked))
            self._count += 1
        return asked.answer

    def close(self) -> None:
        """End the judges. What was not judged has a HarnessError for its answer."""
        self._is_over = True
        self._thread.join()

    # What follows is called by the thread alone.

    def _work(self) -> None:
        poll_s = _POLL_S
        try:
            while not self._is_over:
                if not (self._places.open or self._places.expects_more):
                    raise self._why_none or HarnessError("no device of the cluster is left")
                heard = self._places.hear(poll_s)
                poll_s = _POLL_S if heard or self._new else min(2 * poll_s, _LONGEST_POLL_S)
                for number, message in heard:
                    self._take(number, *message)
                self._admit()
                for builds in self._all_builds():
                    builds.look()
                for number in list(self._free):
                    if self._model_of[number].ready:
                        self._give(number)
                self._answer_until_quiet()
                if heard:
                    self._tell_overall()
            raise HarnessError("these judges were closed before it was judged")
        except BaseException as error:  # whoever waits must hear of it
            fault = error if isinstance(error, HarnessError) else HarnessError(f"{type(error).__name__}: {error}")
            with self._lock:
                self._fault = fault
                waiting = [*self._asked.values(), *(asked for _, asked in self._new)]
            for asked in waiting:
                if not asked.answer.done():
                    asked.answer.set_exception(fault)

    def _tell_overall(self) -> None:
        left, builds = len(self._asked) + len(self._new), sum(each.waiting for each in self._all_builds())
        self._progress.overall(
            judged=self._count - left, of=self._count, at_work=len(self._in_hand), devices=self.devices, builds=builds
        )

    def _take(self, number: int, kind: str, *payload: Any) -> None:
        if kind in ("told", "fault"):
            self._progress.note(payload[0])
            self._why_none = HarnessError(payload[0]) if kind == "fault" else self._why_none
            return
        if number not in self._places.open:
            return
        label = self._places.label(number)
        if kind in ("answer", "unsent"):
            self._doubting.discard(number)
        if kind == "here":
            self._places.send(number, {"device": self._places.device_inside(number)})
        elif kind == "device":
            self._join(number, DeviceIdentity(**payload[0]))
        elif kind == "stage":
            self._progress.status(name_on(label, payload[0]), payload[1])
        elif kind == "note":
            self._progress.note(f"{label}: {payload[0]}")
        elif kind == "until quiet":
            self._until_quiet.add(number)
            self._doubting.add(number)
        elif kind == "answer":
            self._answered(number, *payload)
        elif kind == "unsent":
            self._come_back(number, payload[0])
        else:
            why = f"the judge on {label} {payload[0]}" if kind == "gone" else str(error_of(*payload))
            self._lose(number, why)

    def _join(self, number: int, device: DeviceIdentity) -> None:
        difference = unlike(device, self._devices)
        if difference is not None:
            self._progress.note(f"{self._places.label(number)} has {difference}: each record names its own")
        self._devices.append(device)
        key = device.team
        if key not in self._models:
            self._models[key] = _Model(device, self._places.node(number))
        self._model_of[number] = self._models[key]
        self._models[key].queue.join(number)
        self._warm[number] = OrderedDict()
        self._free.add(number)

    def _admit(self) -> None:
        """Take what has come: a job goes to the model with the fewest for each of its devices, until all have enough."""
        models = [each for each in self._models.values() if each.queue.judges]
        while models:
            model = min(models, key=lambda each: each.share)
            with self._lock:
                if not self._new or model.share >= AHEAD:
                    return
                number, asked = self._new.popleft()
                self._asked[number] = asked
            self._where[number] = model
            model.jobs += 1
            model.queue.add([number])
            # Compilers would take the very cores of a CPU that are timed: its judge builds, and then times.
            if model.device.kind == "cpu" or asked.candidate.fault is not None:
                model.ready.add(number)
            else:
                self._builds(model, asked).add_as(number, asked.candidate)

    def _builds(self, model: _Model, asked: Asked) -> ClusterBuilds:
        if asked.build_key not in model.builds:
            timeout_s = asked.settings.build_timeout_s
            if asked.budget_s is not None:
                timeout_s = min(timeout_s, max(1.0, asked.budget_s))
            settings = replace(asked.settings, build_timeout_s=timeout_s)
            model.builds[asked.build_key] = ClusterBuilds(
                self._link, asked.problem, settings, model.device, model.node, on_ready=model.ready.add
            )
            model.builds[asked.build_key].is_paused = bool(self._doubting)
        return model.builds[asked.build_key]

    def _is_ready(self, model: _Model, number: int) -> bool:
        if number not in model.ready:
            return False
        asked = self._asked[number]
        own = asked.problem.baseline if model.device.kind != "cpu" else None
        return own is None or self._builds(model, asked).is_ready(own)

    def _give(self, place: int) -> None:
        model, warm = self._model_of[place], self._warm[place]
        job = model.queue.next(
            place, lambda number: self._is_ready(model, number), time.monotonic(),
            can_wait=lambda number: self._asked[number].key not in warm, with_following=False,
        )
        if job is None:
            return
        self._free.discard(place)
        model.ready.discard(job.entry)
        self._in_hand[place] = job.entry
        asked = self._asked[job.entry]
        warm[asked.key] = None
        warm.move_to_end(asked.key)
        while len(warm) > _WARM:
            warm.popitem(last=False)
        built: list[Any] = []
        builds = None if model.device.kind == "cpu" else self._builds(model, asked)
        if builds is not None:
            keys = [] if asked.candidate.fault is not None else [job.entry]
            built = list(map(builds.result, [*keys, *filter(None, [asked.problem.baseline])]))
        own = json.dumps({
            "kind": "job", "number": job.entry,
            "candidate": packed_candidate(asked.candidate), "check_only": asked.check_only, "budget_s": asked.budget_s,
            "built": builds is not None, "quiet": builds is None or (builds.is_idle and not builds.is_paused),
        })
        self._places.ask(place, f"{self._shared(asked)[:-1]}, {own[1:]}", built)

    def _shared(self, asked: Asked) -> str:
        """The problem and the settings of a job as JSON, which many jobs share."""
        if asked.key not in self._packed:
            shared = {"problem": packed_problem(asked.problem), "settings": asdict(asked.settings)}
            self._packed[asked.key] = json.dumps(shared)
            if len(self._packed) > _MOST_PACKED:
                self._packed.popitem(last=False)
        return self._packed[asked.key]

    def _answered(
        self, place: int, number: int, values: Mapping[str, Any] | None, samples_or_error: Any, lost: str | None
    ) -> None:
        asked, label = self._asked[number], self._places.label(place)
        del self._in_hand[place]
        self._model_of[place].queue.done(place)
        self._free.add(place)
        if values is None:
            self._progress.clear(label)
            self._settle(number, error_of(*samples_or_error))
        else:
            record = Record(**values)
            if asked.lost is not None:
                record = record.warned(second_try(asked.lost))
            if samples_or_error.get("evidence"):
                paths = {"problem": shown(asked.problem.path), "candidate": shown(asked.candidate.path)}
                samples_or_error["evidence"]["paths"] = paths
            self._progress.done(record, label)
            self._settle(number, Evaluation(record, samples_or_error))
        if lost:
            self._lose(place, f"{label} judges nothing more: {lost}")

    def _settle(self, number: int, answer: Evaluation | HarnessError) -> None:
        """Give a job its answer, once that is in the files, if there are any."""
        asked = self._asked[number]
        if isinstance(answer, Evaluation):
            trouble = self._files.append(asked.key, asked.problem, answer.record, answer.samples)
            if trouble:
                self._progress.note(trouble)
        self._withdraw(number)
        del self._asked[number]
        asked.answer.set_exception(answer) if isinstance(answer, HarnessError) else asked.answer.set_result(answer)

    def _withdraw(self, number: int) -> None:
        """Take a job from the model that it was for."""
        model, asked = self._where.pop(number), self._asked[number]
        model.jobs -= 1
        model.ready.discard(number)
        builds = model.builds.get(asked.build_key)
        if builds is not None:
            builds.give_up(number)
        if len(model.builds) > AHEAD:
            wanted = {self._asked[each].build_key for each, where in self._where.items() if where is model}
            for key in [key for key in model.builds if key not in wanted]:
                model.builds.pop(key).close()

    def _come_back(self, place: int, why: str) -> None:
        """A job did not reach its judge, since what was built for it is gone: it is built again, and its baseline."""
        number, model = self._in_hand.pop(place), self._model_of[place]
        asked = self._asked[number]
        model.queue.done(place)
        self._free.add(place)
        if asked.problem.baseline is not None:
            builds = self._builds(model, asked)
            builds.give_up(asked.problem.baseline)
            builds.add([asked.problem.baseline])
        self._lost_over(number, place, model, why)

    def _lose(self, place: int, why: str) -> None:
        """A device less: the job that it had in hand is tried once more, and all others go on elsewhere."""
        self._progress.clear(self._places.label(place))
        self._progress.note(why)
        self._why_none = HarnessError(why)
        self._places.end(place)
        self._free.discard(place)
        self._until_quiet.discard(place)
        self._doubting.discard(place)
        self._warm.pop(place, None)
        model = self._model_of.pop(place, None)
        if model is None:
            return
        model.queue.lose(place)
        number = self._in_hand.pop(place, None)
        if number is not None:
            self._lost_over(number, place, model, why)
        if not model.queue.judges:
            self._move_all(model)

    def _lost_over(self, number: int, place: int, model: _Model, why: str) -> None:
        """A device was lost over this job: it comes again at the end, or has its record where it was the second."""
        asked = self._asked[number]
        if asked.lost is not None:
            record = _record_of_lost(asked, model.device, twice(asked.lost, why))
            self._progress.done(record, self._places.label(place))
            self._settle(number, Evaluation(record, {}))
            return
        asked.lost = why
        self._withdraw(number)
        with self._lock:
            self._new.append((number, self._asked.pop(number)))

    def _move_all(self, model: _Model) -> None:
        """Its last device is gone: what waited for it is taken anew, by another model's or one that comes."""
        left = [number for number, where in self._where.items() if where is model]
        for number in left:
            self._withdraw(number)
        with self._lock:
            self._new.extendleft((number, self._asked.pop(number)) for number in reversed(left))
        for builds in model.builds.values():
            builds.close()
        del self._models[model.device.team]

    def _all_builds(self) -> list[ClusterBuilds]:
        return [each for model in self._models.values() for each in model.builds.values()]

    def _answer_until_quiet(self) -> None:
        """Who doubts a clock waits until nothing is being compiled; nothing more is begun until it has judged."""
        builds = self._all_builds()
        for each in builds:
            each.is_paused = bool(self._doubting)
        if self._until_quiet and all(each.is_idle for each in builds):
            for place in self._until_quiet:
                self._places.send(place, "quiet")
            self._until_quiet.clear()


def _record_of_lost(asked: Asked, device: DeviceIdentity, why: str) -> Record:
    """Return the row of a job whose devices are gone."""
    problem, candidate, settings = asked.problem, asked.candidate, asked.settings
    return Record(
        run_id=secrets.token_hex(8), utc=utc_now(), problem=problem.name,
        problem_hash=problem.hash, sizes=sizes_text(problem.sizes), dtype=problem.dtype, mode=problem.mode,
        config=settings.name, candidate=candidate.name, source_hash=candidate.source_hash,
        parameters=candidate.parameters, language=candidate.language, status=Status.SKIPPED,
        reason_code=ReasonCode.DEVICE_LOST, reason=why, device_kind=device.kind, device_name=device.name,
    )
