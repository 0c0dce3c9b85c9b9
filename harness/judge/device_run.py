"""One problem's entries on one device, judged and recorded one after the other, the control first."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch

from harness.audit.suspicions import suspicions_in
from harness.build.late_requests import may_go_on
from harness.build.missing_extension import WENT_ON
from harness.build.outcome import saved_meanwhile
from harness.build.product import Build
from harness.device.bench import Bench
from harness.judge.build_pool import BuildPool
from harness.judge.entry_verdict import EntryJudge
from harness.judge.judgement import Judgement, Prepared
from harness.judge.worker_prestart import Entry, WorkerPrestart, is_slow_to_start
from harness.launch import first_calls
from harness.model.baselines import BASELINES, baselines_for
from harness.model.candidate import Candidate
from harness.model.errors import HarnessError, NoRoom
from harness.model.peaks import load_peaks
from harness.model.physics import limits
from harness.model.problem import Problem
from harness.model.problem_notes import ProblemNote
from harness.model.settings import Settings
from harness.model.verdict import OK, ReasonCode, Status, Verdict, of_own_defect, traceback_of
from harness.protocol.cuda_driver import DriverError
from harness.reference.reference_model import Reference
from harness.reference.rounding_noise import noisy_outputs
from harness.report.progress import Progress
from harness.results.assembly import RunFacts, record_of, samples_of
from harness.results.own_baseline import over_own_baseline
from harness.results.record import Record
from harness.results.writer import RunFiles
from harness.sandbox.spawn import Child
from harness.timing.control import Control
from harness.timing.stats import load_ahead
from harness.tools.sanitizer.examination import Examiner

# A control must be of the minutes that it is held against, and so must the canaries that stand beside a time; a run of a
# few candidates takes about as long.
_KEEPS_S = 60.0
# How often a candidate is begun anew with what it asked for as it ran: one extension may only be asked for by what another
# has done.
_MOST_BUILT_ANEW = 3
# What may come of an extension that did not build, where the candidate does not go on without it.
_FOR_WANT_OF_IT = (ReasonCode.BUILD_CHANGED, ReasonCode.RAISED)


class DeviceRun:
    """Judges entries in order; while one is judged on a GPU, the next one's worker is already started."""

    def __init__(
        self, problem: Problem, settings: Settings, bench: Bench, build_pool: BuildPool, files: RunFiles,
        progress: Progress, utc: str, examiner: Examiner | None = None,
        command: str | None = None, wanted_extras: Collection[str] = (),
    ) -> None:
        self._problem, self._settings, self._bench = problem, settings, bench
        self._build_pool, self._files, self._progress = build_pool, files, progress
        self._sizes = problem.timed_sizes(bench.kind)
        self._examiner, self._wanted_extras = examiner, wanted_extras
        self._prestart = WorkerPrestart(is_idle=bench.limits.is_host)
        # The control, whose worker gets ready meanwhile.
        self._prestart.start(BASELINES["eager"], build_pool, open_device=True)
        with first_calls.made_meanwhile(bench.torch_device):
            load_ahead()
        progress.note("drawing inputs and computing truths")
        try:
            references, model_seed = self._references()
            if self._prestart.wait_until_open():  # before anything is timed
                bench.note_waiting_worker()
            self._measure = partial(
                measured_facts, problem, self._sizes, settings, bench, command=command, sandbox=build_pool.sandbox.text
            )
            self._facts, self._facts_at = self._measure(utc), time.monotonic()
            self._judge = self._judge_with(references, model_seed)
        except BaseException:
            self._prestart.drop()
            raise
        self._to_come: list[Entry] = []
        self._lost: str | None = None
        self._check_only = False
        self._control_is_noisy = False
        self._control_at = 0.0
        self._own_row: Record | None = None  # of the baseline of the user's own, once it is judged
        self._held_back: list[tuple[Record, dict[str, Any]]] = []

    def _references(self) -> tuple[list[Reference], int]:
        """The reference at all sizes, and the seed under which its model and the candidates' are constructed."""
        model_seed, bench = secrets.randbits(31), self._bench
        bench.forget_launches()  # of another problem
        bench.release_memory()
        bench.limit_memory(self._settings.memory_bytes)
        all_sizes = [self._sizes, *self._problem.checks_for(bench.kind)]
        try:
            references = [
                Reference(self._problem, sizes, bench.torch_device, model_seed, bench.available_bytes())
                for sizes in all_sizes
            ]
        except (torch.OutOfMemoryError, DriverError) as error:
            said = str(error).splitlines()[0]
        else:
            self._note_noise(references[0])
            return references, model_seed
        bench.release_memory()
        raise NoRoom(
            f"{self._problem.name}: this device has no room for one call of the reference at these sizes, of "
            f"{bench.available_bytes() / 1e9:.1f} GB that are free ({said}). Run it at smaller ones with --sizes, or on a "
            "device with more memory"
        )

    def _note_noise(self, reference: Reference) -> None:
        """Note where all that the reference returns is rounding noise, in which nothing can be compared."""
        try:
            noisy = noisy_outputs(reference, reference.sample_of(reference.draw()))
        except torch.OutOfMemoryError:  # then it is known in rows, whose memory is planned
            return
        if noisy and len(noisy) == len(reference.output_specs) and ProblemNote.ROUNDING_NOISE not in reference.notes:
            reference.notes.append(ProblemNote.ROUNDING_NOISE)

    def _judge_with(self, references: Sequence[Reference], model_seed: int) -> EntryJudge:
        floor_us = self._facts.limits.floor_us if self._facts.limits else None
        return EntryJudge(
            self._bench, references, self._settings, floor_us, model_seed, self._examiner, self._wanted_extras,
            self._prestart.wait_until_open, self._open_after_that,
        )

    def judge_alone(
        self, candidate: Candidate, build_pool: BuildPool, utc: str, *, check_only: bool = False, budget_s: float = math.inf
    ) -> None:
        """Judge one more candidate, built by `build_pool`, in a device run that goes on: the control is judged but
        once, and timed again for a moment when it is a minute old, or was timed beside compilers that have ended;
        canaries are measured again likewise. What needs no launch needs neither.

        Parameters are drawn anew for each, since what an answer told of the last ones must be of no use to the next.
        With `check_only` it is not timed, and needs no control. Its build, unless that was kept, and its row may take
        `budget_s` together.
        """
        self._build_pool = build_pool
        self._facts = replace(self._facts, run_id=secrets.token_hex(8), utc=utc)
        self._lost = self._lost and self._bench.unhealthy()
        is_settled = build_pool.is_settled(candidate)
        if not (is_settled or self._lost) and _is_old(self._facts_at) and build_pool.is_quiet:
            with suppress(RuntimeError):  # a device that is full or gone: what is tried on it says so, in its row
                self._facts, self._facts_at = self._measure(utc), time.monotonic()
        if is_settled:
            self._prestart.drop()  # the control's worker would hold the device until a candidate can be launched
            self._one(candidate, None)
            return
        if self._judge.has_parameters:
            before, (references, model_seed) = self._judge, self._references()
            self._judge = self._judge_with(references, model_seed)
            self._judge.control, self._judge.baseline_pool = before.control, before.baseline_pool
            self._judge.control_row_s = before.control_row_s
        self._check_only = check_only
        if budget_s < math.inf and not (build := build_pool.build_of(candidate)).cached:
            budget_s -= build.seconds
        self._judge.budget_s = budget_s
        self._judge.renew = self._renew_when_quiet
        if check_only:
            pass
        elif self._judge.control is None or (self._own_row is not None and self._own_row.status is Status.UNSURE):
            self._one(BASELINES["eager"], None)
        elif _is_old(self._control_at) or self._could_be_quieter():
            self._renew_control()
        try:
            self._one(candidate, None)
        finally:
            self._judge.forget_ready()  # nobody knows when the next one comes

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Judge the control first, then the other baselines and the candidates as they get ready; each gets its record.
        """
        entries: list[Entry] = [*baselines_for(self._problem, self._bench.kind), *candidates]
        self._prestart.start_slow(entries, self._build_pool)
        self._to_come = list(entries)
        self.judge_each(as_they_get_ready(entries, self._could_begin, is_slow_to_start, self._wait_for_one))

    def _could_begin(self, entry: Entry) -> bool:
        return self._fault_of(entry) is not None or self._build_pool.is_ready(entry)

    def _wait_for_one(self, entries: Sequence[Entry]) -> None:
        candidates = [entry for entry in entries if isinstance(entry, Candidate)]
        self._progress.stage(candidates[0].name, "building")
        self._build_pool.wait_for_one(candidates)

    @property
    def lost(self) -> str | None:
        """Why this device can judge nothing any more, or None."""
        return self._lost

    def judge_each(self, entries: Iterable[tuple[Entry, Entry | None]]) -> None:
        """Judge entry after entry, each given with the one that follows it, as far as that is known."""
        self._judge.renew = self._renew_when_quiet
        try:
            for entry, following in entries:
                if self._could_be_quieter():
                    self._renew_control()
                self._one(entry, following)
        finally:
            self._prestart.drop()
            self._judge.forget_ready()

    def _one(self, entry: Entry, following: Entry | None) -> None:
        """Judge `entry` and record it; after eager the baseline of the user's own, which all other rows are over."""
        own = self._problem.baseline if entry is BASELINES["eager"] else None
        self._judge_entry(entry, own or following)
        if own is not None:
            try:
                self._judge_entry(own, following)
            finally:
                self._write_held_back()

    def _judge_entry(self, entry: Entry, following: Entry | None) -> None:
        self._to_come = [each for each in self._to_come if each is not entry and each is not following]
        build = judgement = None
        verdict = self._fault_of(entry)
        if verdict is None and isinstance(entry, Candidate):
            if not self._build_pool.is_ready(entry):
                self._progress.stage(entry.name, "building")
            build = self._build_pool.build_of(entry)
            verdict = build.verdict
        if verdict is None:
            judgement = self._attempt_as_built(entry, following)
            verdict = judgement.verdict
            if isinstance(entry, Candidate):
                build = self._build_pool.build_of(entry)
                verdict = with_suspicions(verdict, entry.source, judgement)
                if not entry.is_as_read:  # its process read the file by itself, and the record is of what was read here
                    verdict, judgement = saved_meanwhile(entry), None
        self._record(entry, verdict, build, judgement)

    def _fault_of(self, entry: Entry) -> Verdict | None:
        if isinstance(entry, Candidate) and entry.fault is not None:
            return Verdict(Status.BUILD_FAILED, entry.fault_code, entry.fault)
        if self._lost is not None:
            return Verdict(Status.SKIPPED, ReasonCode.DEVICE_LOST, f"{self._lost}; run again once it is mended")
        return None

    def _attempt_as_built(self, entry: Entry, following: Entry | None) -> Judgement:
        """Try `entry`; anew each time that it asks for extensions that its build had not made, once those are built."""
        judgement = self._attempt(entry, following, may_ask=isinstance(entry, Candidate))
        for left in reversed(range(_MOST_BUILT_ANEW)):
            if not judgement.unbuilt:
                break
            self._progress.stage(entry.name, "building what it asked for as it ran")
            refused = self._build_pool.build_asked(entry, judgement.unbuilt)
            if refused is not None and not may_go_on(refused):
                return Judgement(refused)
            judgement = self._attempt(entry, following, may_ask=left > 0)
            if refused is not None and judgement.verdict.reason_code in _FOR_WANT_OF_IT:
                return Judgement(refused)
            if refused is not None:
                judgement.warnings.append(WENT_ON)
        return judgement

    def _attempt(self, entry: Entry, following: Entry | None, *, may_ask: bool = False) -> Judgement:
        prepared, starter = self._build_pool.prepared(entry)
        if isinstance(entry, Candidate):
            prepared = replace(prepared, may_ask=may_ask, check_only=self._check_only)
        control = prepared.is_control
        if not control and not prepared.check_only:
            self._time_eager_elsewhere()
        starter = self._prestart.take(entry) or starter
        try:
            self._prestart.start(following, self._build_pool, open_device=self._bench.has_room_for_waiting())
            self._prestart.start(next(self._likely_after_that(), None), self._build_pool)
            judgement = self._judge.judge(
                prepared, [starter.start] * self._settings.workers, lambda text: self._progress.stage(entry.name, text)
            )
        except HarnessError:
            raise
        except Exception as error:
            # Ours, or what a hostile process sent got past the session's checks: that row has no rank, and the run goes on.
            judgement = Judgement(of_own_defect(error), traceback=traceback_of(error))
        finally:
            starter.close()
        if control and judgement.timing is not None and judgement.timing.candidate_us:
            self._judge.control = Control.of(judgement.timing)
            self._judge.baseline_pool.add(judgement.timings)
            self._judge.baseline_pool.kernels = judgement.launched or self._judge.baseline_pool.kernels
            self._control_is_noisy = not self._build_pool.is_quiet
            self._control_at = time.monotonic()
        elif prepared.is_baseline and self._judge.control is not None and judgement.verdict == OK:
            self._judge.control = self._judge.control.and_baseline(judgement.timing)
        self._lost = self._bench.unhealthy()
        # One that is just opening the device is counted with all that it will hold of its memory.
        left_bytes = 0 if self._lost else self._bench.left_bytes(self._prestart.open_count())
        if left_bytes:
            self._progress.note(
                f"{entry.name} is gone, but {left_bytes / 1e9:.1f} GB of the GPU's memory are still held"
            )
        return judgement

    def _time_eager_elsewhere(self) -> None:
        """Time eager in as many processes as are wanted, before anything is held against it: all rows are over one mean."""
        while self._judge.baseline_pool.left:
            self._progress.stage("eager", f"timing it in other processes too, {self._judge.baseline_pool.left} to come")
            self._in_control(self._judge.time_eager)

    def _open_after_that(self) -> None:
        """While the worker of a turn goes, the one of the turn after the next opens the device, which takes a quarter
        of a second in which nothing can be timed, and the one after that is started.
        """
        if self._bench.has_room_for_waiting():
            likely = self._likely_after_that()
            self._prestart.start(next(likely, None), self._build_pool, open_device=True, for_later=True)
            self._prestart.start(next(likely, None), self._build_pool)

    def _likely_after_that(self) -> Iterator[Entry]:
        """What is likely to come after the one that follows: it imports already, and opens the device as the worker of
        the turn before it goes.
        """
        return (each for each in self._to_come if not is_slow_to_start(each) and self._could_begin(each))

    def _could_be_quieter(self) -> bool:
        """Whether the control was timed beside compilers, and they have ended."""
        return self._control_is_noisy and self._build_pool.is_quiet

    def _renew_when_quiet(self) -> None:
        """Time the control again for a clock that is in doubt, which beside compilers would prove nothing.

        With a compiler on every core a control once took 390 µs more for the harness's own steps than what came after
        it.
        """
        if not self._build_pool.is_quiet:
            self._progress.note("a clock is in doubt: waiting until nothing is compiled beside it")
            self._build_pool.wait_until_quiet()
        self._renew_control()

    def _renew_control(self) -> None:
        """Time the control again: where there is none yet, where compilers ran beside it, where a clock is doubted."""
        self._control_is_noisy = False
        self._control_at = time.monotonic()
        self._in_control(self._judge.renew_control)

    def _in_control(self, do: Callable[[Prepared, Callable[[], Child]], None]) -> None:
        """Have a judge's method start a worker of the control."""
        prepared, starter = self._build_pool.prepared(BASELINES["eager"])
        self._prestart.wait_until_open()
        try:
            do(prepared, starter.start)
        finally:
            starter.close()

    def _record(self, entry: Entry, verdict: Verdict, build: Build | None, judgement: Judgement | None) -> None:
        is_candidate = isinstance(entry, Candidate)
        record = record_of(
            self._facts, name=entry.name, role=entry.role,
            source_hash=entry.source_hash if is_candidate else None,
            language=entry.language if is_candidate else "torch", verdict=verdict, build=build, judgement=judgement,
            parameters=entry.parameters if is_candidate else None, problem_notes=self._judge.problem_notes,
        )
        self._held_back.append((record, samples_of(judgement, build)))
        baseline = self._problem.baseline
        if baseline is not None and entry is BASELINES["eager"]:
            return  # its speedup over the baseline is known when that is judged, which is next
        if entry is baseline:
            self._own_row = over_own_baseline(record, baseline, None)
        self._write_held_back()

    def _write_held_back(self) -> None:
        baseline, held_back, control = self._problem.baseline, self._held_back, self._judge.control
        self._held_back = []
        for record, samples in held_back:
            if baseline is not None:
                record = over_own_baseline(record, baseline, self._own_row, control.apart if control else 0.0)
            trouble = self._files.append(record, samples)
            if trouble:
                self._progress.note(trouble)
            self._progress.done(record)


def _is_old(since: float) -> bool:
    return time.monotonic() - since > _KEEPS_S


# What is measured of a device before its first entry is judged, and what every record of the run says of both.


def measured_facts(
    problem: Problem, sizes: Mapping[str, int], settings: Settings, bench: Bench, utc: str, *, command: str | None,
    sandbox: str,
) -> RunFacts:
    """The facts of a run that begins at `utc`, canaries and the limits of the device among them."""
    flops = problem.flops.evaluate(sizes) if problem.flops else None
    useful_bytes = problem.bytes.evaluate(sizes) if problem.bytes else None
    bandwidth = bench.copy_gbytes_s()
    peaks = None if bench.limits.is_host else load_peaks(bench.identity.name)
    return RunFacts(
        run_id=secrets.token_hex(8), utc=utc, config=settings.name, config_hash=settings.hash, command=command,
        problem=problem, sizes=sizes, bench=bench,
        limits=limits(flops, useful_bytes, bandwidth, peaks, problem.accuracy.precision_class),
        useful_flops=flops, useful_bytes=useful_bytes, canary_gbps=bandwidth,
        canary_tflops=bench.multiply_add_tflops(), event_floor_us=bench.event_floor_us(),
        sandbox=f"{sandbox}; {bench.transport}",
    )


# Which entry is judged next: the first that is ready, so that the device does not wait for a compiler while it could
# work.

_Entry = TypeVar("_Entry")


def as_they_get_ready(
    entries: Sequence[_Entry], is_ready: Callable[[_Entry], bool], is_slow: Callable[[_Entry], bool],
    wait: Callable[[Sequence[_Entry]], None],
) -> Iterator[tuple[_Entry, _Entry | None]]:
    """Each of `entries` with what is likely to follow it, in the given order as far as they are ready when asked for.

    `wait` returns when at least one of the entries that it is given has become ready.
    """
    left, promised = list(entries), None

    def ready() -> list[_Entry]:
        """What could begin now, the slow ones at the end."""
        found = [each for each in left if is_ready(each)]
        return [each for each in found if not is_slow(each)] + [each for each in found if is_slow(each)]

    while left:
        if promised is None or is_slow(promised):
            if not ready():
                wait(list(left))
            promised = ready()[0]
        entry = promised
        left.remove(entry)
        promised = next(iter(ready()), None)
        yield entry, promised


# What a source gives away about itself, put beside its verdict: where to look, and what is not taken from it.


def with_suspicions(verdict: Verdict, source: str, judgement: Judgement) -> Verdict:
    """Where to look in the source, beside a finding; beside a good row, what it says of its own kernels is not taken.

    What tells whose kernels ran is written down in its process, where such a source reaches.
    """
    found = suspicions_in(source)
    if verdict.status is Status.OK and found:
        judgement.warnings += [f"its {each.text}: look at it" for each in found if each.patches]
        provenance = judgement.provenance
        if provenance is not None and provenance.kind in ("custom", "mixed"):
            judgement.provenance = replace(provenance, kind="unknown", own_share=None)
            judgement.warnings.append(
                f"its {found[0].text}: what its process says of its own kernels is not taken from such a source, so "
                "it has no rank; leave that out and run again"
            )
    elif verdict.status in (Status.REJECTED, Status.INCORRECT) and found:
        return replace(verdict, reason=f"{verdict.reason}; its {found[0].text}")
    return verdict
