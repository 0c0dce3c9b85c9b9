"""The story of a run: open the device → build all candidates → judge each → record each → rank.

Builds go on while the device already judges what is ready. Whatever a candidate does costs its own record; only a
device that no longer answers ends the run early, and then what was won is on disk.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from harness.baselines import Baseline, baselines_for, write_baseline
from harness.build.cache import Cache
from harness.build.environment import arch_of, find_toolchain
from harness.build.product import Build
from harness.build.queue import BuildQueue
from harness.candidate import Candidate
from harness.device.bench import Bench
from harness.device.choose import device_lock, open_bench
from harness.errors import HarnessError
from harness.peaks import load_peaks
from harness.physics import limits
from harness.problem import Problem
from harness.records.assembling import RunFacts, baseline_hash, record_of, samples_of
from harness.records.ranking import rank
from harness.records.schema import Record
from harness.records.writer import RunFiles, device_slug
from harness.referee.judging import Contestant, Judge, Judgement
from harness.referee.players import PlayerStarter
from harness.referee.reference import Reference
from harness.report.progress import Progress
from harness.sandbox.walls import best_wall
from harness.settings import Settings
from harness.verdict import ReasonCode, Status, Verdict

_LOCK_WAIT_S = 3600


@dataclass(frozen=True)
class RunRequest:
    """What the user asked for: a problem, the candidates chosen, a device by name, settings, where results go."""

    problem: Problem
    candidates: Sequence[Candidate]
    device: str
    settings: Settings
    out_dir: Path


@dataclass(frozen=True)
class RunResult:
    """All records with their ranks, and the file they are in."""

    records: list[Record]
    csv_path: Path


def run(request: RunRequest, progress: Progress) -> RunResult:
    """Judge everything that `request` names. Raises HarnessError for what is the user's or the machine's fault."""
    progress.note("opening the device")
    bench = open_bench(request.device)
    utc = datetime.now(timezone.utc).isoformat(timespec="seconds")
    slug = device_slug(bench.identity.name, bench.kind)
    files = RunFiles.create(request.out_dir, request.problem.name, slug, utc)
    with _Workshop(request, bench) as workshop, _alone_on(bench, progress):
        if bench.kind == "cpu":
            # Compilers would take the very cores that are about to be timed.
            progress.note("building all candidates before the CPU is timed")
            workshop.wait_for_builds()
        referee = _Referee(request, bench, workshop, files, progress, utc)
        referee.judge_baselines()
        referee.judge_candidates()
    records = rank(files.records, request.problem.kinds, request.problem.accuracy.precision_class)
    _say(progress, files.finish(records))
    return RunResult(records, files.csv_path)


class _Workshop:
    """What lasts as long as the run: the builds, the wall, and a folder for the baselines' files."""

    def __init__(self, request: RunRequest, bench: Bench) -> None:
        capability = bench.identity.sm
        arch = arch_of(tuple(int(part) for part in capability.split("."))) if capability else None
        self.toolchain = find_toolchain(arch)
        self.wall = best_wall()
        self.cache = Cache()
        self.folder = Path(tempfile.mkdtemp(prefix="kernel-referee-"))
        self._sound = [candidate for candidate in request.candidates if candidate.fault is None]
        self._builds = BuildQueue(
            self._sound, self.toolchain, self.cache, request.settings, self.wall,
            {"reference": str(request.problem.reference_path.resolve()), "sizes": request.problem.timed_sizes(bench.kind)},
        )

    def __enter__(self) -> _Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        self._builds.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def build_of(self, candidate: Candidate) -> Build:
        return self._builds.result(candidate)

    def wait_for_builds(self) -> None:
        for candidate in self._sound:
            self._builds.result(candidate)

    def warm_folder(self, name: str) -> Path:
        """Where a contestant's own compiled Triton and Inductor kernels outlive the run."""
        return self.cache.root / "warm" / f"{self.toolchain.torch}-{self.toolchain.sm}" / name


class _Referee:
    """Judges and records one contestant after the other."""

    def __init__(
        self, request: RunRequest, bench: Bench, workshop: _Workshop, files: RunFiles, progress: Progress, utc: str
    ) -> None:
        self._request, self._bench, self._workshop = request, bench, workshop
        self._files, self._progress = files, progress
        problem, kind = request.problem, bench.kind
        progress.note("drawing inputs and computing truths")
        model_seed = secrets.randbits(31)
        self._sizes = problem.timed_sizes(kind)
        all_sizes = [self._sizes, *problem.checks_for(kind)]
        references = [Reference(problem, sizes, bench.torch_device, model_seed) for sizes in all_sizes]
        self._facts = self._measure_device(utc)
        floor_us = self._facts.limits.floor_us if self._facts.limits else None
        self._judge = Judge(bench, references, request.settings, floor_us, model_seed)
        self._lost: str | None = None

    def judge_baselines(self) -> None:
        """The control first (eager in a player), then the others; each gets its row."""
        for baseline in baselines_for(self._request.problem, self._bench.kind):
            path = write_baseline(baseline, self._request.problem, self._sizes, self._workshop.folder)
            judgement = self._play_baseline(baseline, path)
            if baseline.name == "eager" and judgement.timing is not None:
                self._judge.control_overhead_us = judgement.timing.wall_overhead_us
            self._record(
                judgement, judgement.verdict, name=baseline.name, role="baseline", source_hash=None,
                language="torch", build=None,
            )

    def judge_candidates(self) -> None:
        for candidate in self._request.candidates:
            build, judgement = None, None
            if candidate.fault is not None:
                verdict = Verdict(Status.BUILD_FAILED, candidate.fault_code, candidate.fault)
            elif self._lost is not None:
                verdict = Verdict(Status.SKIPPED, ReasonCode.DEVICE_LOST, self._lost)
            else:
                self._progress.stage(candidate.name, "building")
                build = self._workshop.build_of(candidate)
                verdict = build.verdict
                if verdict is None:
                    judgement = self._play_candidate(candidate, build)
                    verdict = judgement.verdict
            self._record(
                judgement, verdict, name=candidate.name, role="candidate", source_hash=candidate.source_hash,
                language=candidate.language, build=build,
            )

    def _play_baseline(self, baseline: Baseline, path: Path) -> Judgement:
        precision_class = baseline.precision_class or self._request.problem.accuracy.precision_class
        warm = self._workshop.warm_folder(f"{baseline.name}-{baseline_hash(path)}")
        contestant = Contestant(baseline.name, str(path), {}, (), warm / "triton", precision_class, is_baseline=True)
        return self._play(contestant, warm)

    def _play_candidate(self, candidate: Candidate, build: Build) -> Judgement:
        warm = self._workshop.warm_folder(self._workshop.cache.key(candidate, self._workshop.toolchain))
        contestant = Contestant(
            candidate.name, str(candidate.path.resolve()), build.manifest,
            tuple(extension.path for extension in build.extensions), warm / "triton",
            self._request.problem.accuracy.precision_class,
        )
        return self._play(contestant, warm)

    def _play(self, contestant: Contestant, warm: Path) -> Judgement:
        starter = PlayerStarter(self._bench, self._workshop.wall, warm)
        players = 1 if contestant.is_baseline and contestant.name != "eager" else self._request.settings.players
        try:
            judgement = self._judge.judge(
                contestant, [starter.start] * players, lambda text: self._progress.stage(contestant.name, text)
            )
        finally:
            starter.close()
        self._lost = self._bench.unhealthy()
        return judgement

    def _record(self, judgement: Judgement | None, verdict: Verdict, **named: object) -> None:
        record = record_of(self._facts, verdict=verdict, judgement=judgement, **named)
        _say(self._progress, self._files.append(record, samples_of(judgement)))
        self._progress.done(record)

    def _measure_device(self, utc: str) -> RunFacts:
        problem, bench = self._request.problem, self._bench
        flops = problem.flops.evaluate(self._sizes) if problem.flops else None
        useful_bytes = problem.bytes.evaluate(self._sizes) if problem.bytes else None
        bandwidth = bench.copy_gbytes_s()
        peaks = load_peaks(bench.identity.name) if bench.kind == "cuda" else None
        return RunFacts(
            run_id=secrets.token_hex(8), utc=utc, config=self._request.settings.name, problem=problem,
            sizes=self._sizes, bench=bench,
            limits=limits(flops, useful_bytes, bandwidth, peaks, problem.accuracy.precision_class),
            useful_flops=flops, useful_bytes=useful_bytes, canary_gbps=bandwidth,
            event_floor_us=bench.event_floor_us(), sandbox=f"{self._workshop.wall.text}; {bench.transport}",
        )


@contextmanager
def _alone_on(bench: Bench, progress: Progress) -> Iterator[None]:
    """Hold the device's lock, with a word to the user when another run has it."""
    from filelock import Timeout

    lock = device_lock(bench.identity.uuid)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress.note("another run is timing on this device; waiting for it to end")
        try:
            lock.acquire(timeout=_LOCK_WAIT_S)
        except Timeout:
            raise HarnessError(f"another run has held {bench.identity.name} for an hour; try again later") from None
    try:
        yield
    finally:
        lock.release()


def _say(progress: Progress, trouble: str | None) -> None:
    if trouble:
        progress.note(trouble)


def nothing_ran(records: Sequence[Record]) -> bool:
    """Whether no candidate came as far as a launch."""
    idle = {Status.SKIPPED, Status.COMPILED, Status.BUILD_FAILED}
    own = [record for record in records if record.role == "candidate"]
    return bool(own) and all(record.status in idle for record in own)

