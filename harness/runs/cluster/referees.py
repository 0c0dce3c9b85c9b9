"""Candidates of any problems, judged on the devices of a cluster, for programs: `Referees`.

Answers are futures, so that a caller may wait, iterate or await; who judges what is `dispatch`'s.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import queue
import shutil
import tempfile
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.model.candidate import Candidate, candidate_of, read_candidate
from harness.model.errors import HarnessError
from harness.model.files import problem_file, settings_file  # noqa: F401  pydantic loads while devices open
from harness.model.problem import Problem
from harness.model.scaffold import checked_name
from harness.model.settings import Settings, load_settings
from harness.report.progress import NullProgress, Progress
from harness.results.record import Record
from harness.runs.cluster.answer_files import AnswerFiles
from harness.runs.cluster.dispatch import AHEAD, Asked, Dispatcher
from harness.runs.cluster.link import Link, connected
from harness.runs.cluster.parcel import packed_candidate
from harness.runs.cluster.ray_executors import RayExecutors
from harness.runs.referee import UNNAMED, Evaluation, key_of, problem_given, source_given

WARM_PROGRAM = "harness.runs.cluster.warm"


@dataclass(frozen=True)
class Job:
    """One candidate to judge: its `source`, as text or the path of its file, and the words of `Referee.evaluate`."""

    problem: Problem | Path | str
    source: str | Path
    name: str | None = None
    config: str = "default"
    mode: str | None = None
    baseline: Path | str | None = None
    check_only: bool = False
    budget_s: float | None = None


class Referees:
    """The devices of a Ray cluster; use it in a `with`.

    `address` is "auto" or a cluster's; `device` "cpu" for the CPUs of its nodes instead of GPUs, `model` an accelerator type
    that it keeps to. `out_dir` keeps the records on disk too, one CSV for each problem and model. The file of a problem is
    read once. Every method may be called from any thread.

    Raises HarnessError as `Referee` does; whatever a candidate does is its record. A job over which a device is lost is
    judged once more, which its record says.
    """

    def __init__(
        self, address: str = "auto", *, device: str = "auto", model: str | None = None, progress: Progress | None = None,
        wait_s: float | None = None, out_dir: Path | str | None = None, link: Link | None = None,
    ) -> None:
        self._files = AnswerFiles(None if out_dir is None else Path(out_dir))
        self._folder = Path(tempfile.mkdtemp(prefix="kernel-referees-"))
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        try:
            link = link or self._stack.enter_context(connected(address, device, model))
            places = self._stack.enter_context(RayExecutors(link, program=WARM_PROGRAM, wait_s=wait_s))
        except BaseException:
            self._stack.close()
            raise
        self._problems: dict[Any, Problem] = {}
        self._settings: dict[str, Settings] = {}
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Evaluation]] = {}  # by what makes jobs equal
        self._keys: dict[Any, tuple[Any, ...]] = {}  # of problems that are given by name, with each of the settings
        self.models = link.models
        self._stack.callback(self._files.finish)
        self._dispatcher = Dispatcher(link, places, progress or NullProgress(), self._files)

    def __enter__(self) -> Referees:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every judge. What was not judged has a HarnessError for its answer; records on disk get their ranks."""
        self._dispatcher.close()
        self._stack.close()

    @property
    def devices(self) -> int:
        """How many devices judge now."""
        return self._dispatcher.devices

    @property
    def at_once(self) -> int:
        """How many candidates are best asked for at once, where what is learned of some decides which come next."""
        return max(1, self.devices)

    def csv_of(self, problem: Problem, settings: Settings) -> Path | None:
        """Return where the records of this problem are kept, if they are."""
        return self._files.csv_of(key_of(problem, settings))

    def evaluate(self, problem: Problem | Path | str, source: str | Path, **words: Any) -> Evaluation:
        """Judge one candidate and return what became of it; `words` are the others of a `Job`."""
        return self.submit(Job(problem, source, **words)).result()

    async def evaluate_async(self, problem: Problem | Path | str, source: str | Path, **words: Any) -> Evaluation:
        """The same, for asyncio."""
        asked = await asyncio.to_thread(self.submit, Job(problem, source, **words))
        return await asyncio.wrap_future(asked)

    def map(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Evaluation | HarnessError]]:
        """Judge `jobs` and give each with its answer as soon as it is there, in no order.

        No more are taken from `jobs` than keep the devices busy. What equals an earlier job but for its name is not judged
        again: it has the answer of that one. An error in words is the answer of a job that could not be judged.
        """
        answers = _Answers(self._folder)
        equal: dict[str, list[tuple[Job, str]]] = {}  # what is under way with its name, by what makes jobs equal
        count = 0
        done: queue.SimpleQueue[tuple[str, Future[Evaluation]]] = queue.SimpleQueue()
        left, is_more = iter(jobs), True
        while is_more or equal:
            if not is_more or count >= AHEAD * max(1, self.devices) or not done.empty():
                key, asked = done.get()
                error = asked.exception()
                if error is None and asked.result().record.blame in (None, "candidate"):
                    answers.put(key, asked.result())
                for job, name in equal.pop(key):
                    count -= 1
                    yield job, _called(asked.result(), name) if error is None else error
                continue
            job = next(left, None)
            if job is None:
                is_more = False
                continue
            try:
                read = self._asked_of(job)
            except HarnessError as error:
                yield job, error
                continue
            known = answers.get(key := _key_of(read))
            if known is not None:
                yield job, _called(known, read.candidate.name)
                continue
            count += 1
            equal.setdefault(key, []).append((job, read.candidate.name))
            if len(equal[key]) == 1:
                self._put(read, key).add_done_callback(lambda asked, key=key: done.put((key, asked)))

    async def map_async(self, jobs: Iterable[Job]) -> AsyncIterator[tuple[Job, Evaluation | HarnessError]]:
        """The same, for asyncio."""
        answers, end = self.map(jobs), object()
        while (answer := await asyncio.to_thread(next, answers, end)) is not end:
            yield answer

    def judge(self, problem: Problem, candidates: Sequence[Candidate], settings: Settings) -> Iterator[Evaluation]:
        """Judge candidates that were read already, each given as soon as its answer is there. Raises HarnessError."""
        key = key_of(problem, settings)
        left = {self._dispatcher.put(Asked(problem, each, settings, False, None, key)) for each in candidates}
        while left:
            done, left = wait(left, return_when=FIRST_COMPLETED)
            for each in done:
                yield each.result()

    def submit(self, job: Job) -> Future[Evaluation]:
        """Have `job` be judged, and return the future of its answer at once.

        While one is under way that equals it but for its name, it has the answer of that one. The future of a job that is
        wrong in itself has its InputError.
        """
        try:
            asked = self._asked_of(job)
            return self._put(asked, _key_of(asked))
        except HarnessError as error:
            return _failed(error)

    def _put(self, asked: Asked, key: str) -> Future[Evaluation]:
        """The answer to come, which is that of an equal job where one is under way."""
        with self._lock:
            first = self._under_way.get(key)
            if first is None:
                try:
                    first = self._under_way[key] = self._dispatcher.put(asked)
                except HarnessError as error:
                    return _failed(error)
                first.add_done_callback(lambda _: self._under_way.pop(key, None))
                return first
        answer: Future[Evaluation] = Future()
        answer.set_running_or_notify_cancel()
        first.add_done_callback(lambda done: _pass_on(done, answer, asked.candidate.name))
        return answer

    def _asked_of(self, job: Job) -> Asked:
        """The job with everything read. Raises InputError."""
        settings = self._settings.get(job.config) or self._settings.setdefault(job.config, load_settings(job.config))
        words = (str(job.problem), job.mode, job.baseline) if not isinstance(job.problem, Problem) else None
        problem = self._problems.get(words)
        if problem is None:
            problem = problem_given(job.problem, job.mode, job.baseline)
            if words is not None:
                self._problems[words] = problem
        key = self._keys.get((words, job.config)) or key_of(problem, settings)
        if words is not None:
            self._keys[words, job.config] = key
        return Asked(problem, self._read(job, problem), settings, job.check_only, job.budget_s, key)

    def _read(self, job: Job, problem: Problem) -> Candidate:
        source = source_given(job.source, job.name)
        if isinstance(source, Path):
            return read_candidate(source, form=problem.form)
        # There is no such file here: a node writes one for itself.
        suffix = ".py" if problem.form is None else problem.form.suffix
        path = self._folder / f"{checked_name(job.name or UNNAMED)}{suffix}"
        return candidate_of(source.encode(), path, form=problem.form, among=[])


class _Answers:
    """Answers by the keys of their jobs, in a file: of thousands the samples would fill the memory."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)
        self._places: dict[str, tuple[int, int]] = {}

    def put(self, key: str, evaluation: Evaluation) -> None:
        text = json.dumps([evaluation.record.to_json(), dict(evaluation.samples)]).encode()
        self._places[key] = self._file.seek(0, 2), len(text)
        self._file.write(text)

    def get(self, key: str) -> Evaluation | None:
        if key not in self._places:
            return None
        start, length = self._places[key]
        self._file.seek(start)
        record, samples = json.loads(self._file.read(length))
        return Evaluation(Record(**record), samples)


def _called(evaluation: Evaluation, name: str) -> Evaluation:
    """The answer of an equal job under another's name."""
    if name == evaluation.record.candidate:
        return evaluation
    return Evaluation(replace(evaluation.record, candidate=name), evaluation.samples)


def _failed(error: HarnessError) -> Future[Evaluation]:
    wrong: Future[Evaluation] = Future()
    wrong.set_exception(error)
    return wrong


def _pass_on(done: Future[Evaluation], answer: Future[Evaluation], name: str) -> None:
    error = done.exception()
    answer.set_result(_called(done.result(), name)) if error is None else answer.set_exception(error)


def _key_of(asked: Asked) -> str:
    """What equal jobs have in common: all that a node is told of them, but names that nothing there can see."""
    packed = {name: value for name, value in packed_candidate(asked.candidate).items() if name not in ("name", "path")}
    sees_its_name = packed["beside"] or "__file__" in packed["source"]
    file_name = asked.candidate.path.name if sees_its_name else None
    words = (asked.key, file_name, packed, asked.check_only, asked.budget_s)
    return hashlib.sha256(repr(words).encode("utf-8", "surrogatepass")).hexdigest()
