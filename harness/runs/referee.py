"""One candidate at a time, for programs: a judge that stays, so that the device, references and control are warm. The
verdict is the command line's own: the same device run, the same checks, in the same fresh processes.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.build.queue import builders_at_once
from harness.device.choice import check_device_name, open_backend
from harness.device.identity import DeviceIdentity
from harness.judge.build_pool import BuildPool, Builds
from harness.judge.device_run import DeviceRun
from harness.judge.run import note_no_sandbox
from harness.model.candidate import Candidate, read_candidate, rivals_of
from harness.model.errors import InputError
from harness.model.paths import located
from harness.model.problem import Problem, find_problem, in_mode, load_problem, over_baseline
from harness.model.scaffold import checked_name
from harness.model.settings import Settings, load_settings
from harness.reference.evidence import Evidence
from harness.report.progress import NullProgress, Progress
from harness.results.ranking import rank_of
from harness.results.record import Record
from harness.results.samples import compiler_reports, evidence_in
from harness.results.scores import result_fields, reward_of
from harness.results.writer import RunFiles, check_writable, device_slug, jsonable, utc_now
from harness.runs.candidate_queue import CandidateQueue, Judge
from harness.sandbox.prestart import prestart

UNNAMED = "candidate"
_MOST_AT_ONCE = 8  # built side by side
_MOST_DEVICE_RUNS = 4  # problems that stay warm; each holds its parameters on the device


def problem_given(problem: Problem | Path | str, mode: str | None, baseline: Path | str | None) -> Problem:
    """Return the problem that a program asks for, by its name or file or itself. Raises InputError."""
    if not isinstance(problem, Problem):
        problem = load_problem(find_problem(Path(problem)))
    return over_baseline(in_mode(problem, mode), None if baseline is None else Path(baseline))


def source_given(source: str | Path, name: str | None) -> Path | str:
    """Return where the candidate's file is, or its text if there is none or it has another name. Raises InputError."""
    if isinstance(source, Path):
        source = located(source)
        if not source.is_file():
            raise InputError("there is no such candidate file", source)
        if name in (None, source.stem):
            return source
        source = source.read_text(encoding="utf-8", errors="replace")
    try:
        source.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"the candidate's source has what no file can hold at {error.start}: {error.reason}") from None
    return source


@dataclass(frozen=True)
class Evaluation:
    """What became of one candidate. `samples` are the raw ones, as a run writes them into its `.jsonl`."""

    record: Record
    samples: Mapping[str, Any]

    @property
    def evidence(self) -> Evidence | None:
        return evidence_in(dict(self.samples))

    @property
    def reward(self) -> float | None:
        """From 0 to 1, for a training loop; None where the verdict is not its own doing (`scores.reward_of`)."""
        return reward_of(self.record)

    @property
    def correctness(self) -> bool:
        return result_fields(self.record, self.samples)["correctness"]

    def to_json(self) -> dict[str, Any]:
        """The record, the evidence and the fields of KernelBench's own result as plain values, under stable keys."""
        return {
            **result_fields(self.record, self.samples), "record": self.record.to_json(), "reward": self.reward,
            "evidence": self.samples.get("evidence"), "errors": self.samples.get("errors", []),
            "kernels": self.samples.get("kernels", []), "compiler": compiler_reports(self.samples),
        }


class Referee(AbstractContextManager):
    """Judges candidates on one device for as long as it is open; use it in a `with`.

    `out_dir` keeps the records on disk as a run does, one CSV for each problem; without it they are in the answers
    alone. It turns TF32 off in this process. It holds the device's lock only while it judges, and waits for it at most
    `wait_s`, by default an hour. Raises HarnessError for what is the caller's or the machine's fault; whatever a
    candidate does is its record.
    """

    def __init__(
        self, device: str = "auto", *, out_dir: Path | str | None = None, progress: Progress | None = None,
        wait_s: float | None = None,
    ) -> None:
        check_device_name(device)
        self._out_dir = None if out_dir is None else Path(out_dir)
        if self._out_dir is not None:
            check_writable(self._out_dir)
        prestart()
        self._progress, self._wait_s = progress or NullProgress(), wait_s
        self._folder = Path(tempfile.mkdtemp(prefix="kernel-referee-jobs-"))
        self._device_runs: OrderedDict[tuple[Any, ...], _Warm] = OrderedDict()
        try:
            self._backend = open_backend(device)
            note_no_sandbox(self._progress)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def identity(self) -> DeviceIdentity:
        """What the device is."""
        return self._backend.identity

    @property
    def at_once(self) -> int:
        """How many candidates are best asked for at once, where what is learned of some decides which come next."""
        return min(builders_at_once(), _MOST_AT_ONCE)

    @property
    def lost(self) -> str | None:
        """Why this device can judge nothing any more, or None."""
        return next((each.device_run.lost for each in self._device_runs.values() if each.device_run.lost), None)

    def close(self) -> None:
        """Forget everything that was warm; records on disk get their ranks."""
        while self._device_runs:
            self._device_runs.popitem()[1].row.finish()
        shutil.rmtree(self._folder, ignore_errors=True)

    def evaluate(
        self, problem: Problem | Path | str, source: str | Path, *, name: str | None = None, config: str = "default",
        mode: str | None = None, baseline: Path | str | None = None, check_only: bool = False,
        budget_s: float | None = None,
    ) -> Evaluation:
        """Judge one candidate: its source as text, or the path of its file.

        `problem` is a name below problems/, a YAML or KernelBench file, or a loaded Problem; `name` is what the record
        calls the candidate, `mode` another one than the problem's own, as in ``--mode``, and `baseline` a file that its
        speedup is over, as in ``--baseline``. With `check_only` the verdict is on its outputs alone and nothing is
        timed: one that is right is `checked`. Its build and its checks may take `budget_s` seconds together.
        """
        settings = load_settings(config)
        problem = problem_given(problem, mode, baseline)
        path = self._written(source, name, ".py" if problem.form is None else problem.form.suffix)
        try:
            candidates = rivals_of(problem.baseline, [read_candidate(path, form=problem.form)])
            [evaluation] = self.judge(problem, candidates, settings, check_only=check_only, budget_s=budget_s)
        finally:
            if path.parent == self._folder:
                path.unlink(missing_ok=True)
        return evaluation

    def judge(
        self, problem: Problem, candidates: Sequence[Candidate], settings: Settings, *, check_only: bool = False,
        budget_s: float | None = None, builds: Builds | None = None,
    ) -> Iterator[Evaluation]:
        """Build `candidates` side by side, or take another's `builds`; judge each once it is ready, in any order."""
        with self.queue(problem, settings, check_only=check_only, budget_s=budget_s, builds=builds) as queue:
            queue.add(candidates)
            while queue.left:
                yield queue.judge_next()

    def queue(
        self, problem: Problem, settings: Settings, *, check_only: bool = False, budget_s: float | None = None,
        builds: Builds | None = None,
    ) -> CandidateQueue[Evaluation]:
        """A queue of candidates for this device, to which more may be added while others are built and judged."""
        key = key_of(problem, settings)
        if key in self._device_runs:
            self._device_runs.move_to_end(key)
        budget_s = math.inf if budget_s is None else budget_s

        def judge_of(warm: _Warm) -> Judge[Evaluation]:
            return partial(warm.judge, check_only, budget_s)

        return CandidateQueue(
            problem, replace(settings, build_timeout_s=min(settings.build_timeout_s, budget_s)), self._backend,
            self._progress, judge_of(self._device_runs[key]) if key in self._device_runs else None,
            lambda build_pool: judge_of(self._opened(problem, settings, build_pool)), self._wait_s, builds,
        )

    def csv_of(self, problem: Problem, settings: Settings) -> Path | None:
        """Where the records of this problem are kept, if they are."""
        warm = self._device_runs.get(key_of(problem, settings))
        return warm.row.files.csv_path if warm and warm.row.files else None

    def _written(self, source: str | Path, name: str | None, suffix: str) -> Path:
        """A file of the candidate that can be read from inside the sandbox."""
        source = source_given(source, name)
        if isinstance(source, Path):
            return source
        path = self._folder / f"{checked_name(name or UNNAMED)}{suffix}"
        path.write_text(source, encoding="utf-8")
        return path

    def _opened(self, problem: Problem, settings: Settings, build_pool: BuildPool) -> _Warm:
        """A new device run, which may take the room of the one that was not asked for longest."""
        while len(self._device_runs) >= _MOST_DEVICE_RUNS:
            self._device_runs.popitem(last=False)[1].row.finish()
            self._backend.release_memory()
        row, utc = _LastRow(problem), utc_now()
        if self._out_dir is not None:
            slug = device_slug(self._backend.identity.name, self._backend.kind)
            row.files = RunFiles.create(self._out_dir, problem.name, slug, utc)
        device_run = DeviceRun(problem, settings, self._backend, build_pool, row, self._progress, utc)
        warm = self._device_runs[key_of(problem, settings)] = _Warm(device_run, row)
        return warm


def key_of(problem: Problem, settings: Settings | None) -> tuple[Any, ...]:
    """Return what a problem stays warm under: all that its references and its control hang on."""
    over = problem.baseline and problem.baseline.source_hash
    sizes = (tuple(each.items()) for each in (problem.sizes, problem.cpu_sizes, *problem.check_sizes))
    return str(problem.path.resolve()), problem.name, problem.hash, problem.mode, *sizes, over, settings


@dataclass
class _LastRow:
    """Where a run's records go that answers with each: keeps the last with its samples, hands all on to any `files`."""

    problem: Problem
    files: RunFiles | None = None
    record: Record | None = None
    samples: Mapping[str, Any] = field(default_factory=dict)

    def append(self, record: Record, samples: Mapping[str, Any] | None = None) -> str | None:
        self.record, self.samples = record, jsonable(samples or {})
        return None if self.files is None else self.files.append(record, samples)

    def finish(self) -> None:
        if self.files is not None:
            self.files.finish(rank_of(self.files.records, self.problem))


@dataclass(frozen=True)
class _Warm:
    """A device run that stays open, and its last row."""

    device_run: DeviceRun
    row: _LastRow

    def judge(self, check_only: bool, budget_s: float, candidate: Candidate, build_pool: BuildPool) -> Evaluation:
        self.device_run.judge_alone(candidate, build_pool, utc_now(), check_only=check_only, budget_s=budget_s)
        (record,) = rank_of([self.row.record], self.row.problem)
        return Evaluation(record, self.row.samples)


def evaluate(
    problem: Problem | Path | str, candidate_source: str | Path, *, name: str | None = None, device: str = "auto",
    config: str = "default", baseline: Path | str | None = None, check_only: bool = False, budget_s: float | None = None,
) -> Evaluation:
    """Judge one candidate and forget everything. For several, `with Referee() as judge` keeps what is warm."""
    with Referee(device) as referee:
        return referee.evaluate(
            problem, candidate_source, name=name, config=config, baseline=baseline, check_only=check_only, budget_s=budget_s
        )
