"""One problem's entries on one device, judged and recorded one after the other, the control first."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from harness.audit.suspicions import suspicions_of, with_suspicions
from harness.build.late_requests import may_go_on
from harness.build.missing_extension import WENT_ON
from harness.build.outcome import saved_meanwhile
from harness.build.product import Build
from harness.device.backend import Backend
from harness.judge.build_pool import BuildPool
from harness.judge.control_keeper import ControlKeeper
from harness.judge.entry_judge import EntryJudge
from harness.judge.judgement import Judgement
from harness.judge.references import references_at_all_sizes
from harness.judge.stages import JudgingContext
from harness.judge.work_queue import WorkQueue
from harness.judge.worker_prestart import Entry, WorkerPrestart, is_slow_to_start
from harness.model.baselines import BASELINES, baselines_for
from harness.model.candidate import Candidate
from harness.model.errors import HarnessError
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.verdict import ReasonCode, Status, Verdict, of_own_defect, traceback_of
from harness.reference.reference_model import Reference
from harness.report.progress import Progress
from harness.results.assembly import CANARIES_KEEP_S, measured_facts, record_of, samples_of
from harness.results.own_baseline import RowsOverBaseline
from harness.results.record import Record
from harness.results.writer import RecordSink
from harness.timing.stats import load_ahead
from harness.tools.sanitizer.examination import Examiner

# How often a candidate is begun anew with what it asked for as it ran: one extension may only be asked for by what another
# has done.
_MOST_BUILT_ANEW = 3
# What may come of an extension that did not build, where the candidate does not go on without it.
_FOR_WANT_OF_IT = (ReasonCode.BUILD_CHANGED, ReasonCode.RAISED)


class DeviceRun:
    """Judges entries in order; while one is judged on a GPU, the next one's worker is already started."""

    def __init__(
        self, problem: Problem, settings: Settings, backend: Backend, build_pool: BuildPool, records: RecordSink,
        progress: Progress, utc: str, examiner: Examiner | None = None, command: str | None = None,
        wanted_extras: Collection[str] = (),
    ) -> None:
        self._problem, self._settings, self._backend = problem, settings, backend
        self._build_pool, self._records, self._progress = build_pool, records, progress
        self._sizes = problem.timed_sizes(backend.kind)
        self._examiner, self._wanted_extras = examiner, wanted_extras
        self._prestart = WorkerPrestart(is_idle=backend.limits.is_host)
        self._control = ControlKeeper(build_pool, self._prestart, progress, backend, settings)
        # The control, whose worker gets ready meanwhile.
        self._prestart.start(BASELINES["eager"], build_pool, open_device=True)
        backend.peak_bytes()  # what an earlier problem held until now is no part of the first row's
        load_ahead()
        progress.note("drawing inputs and computing truths")
        try:
            references, model_seed = self._references()
            if self._prestart.wait_until_open():  # before anything is timed
                backend.note_waiting_worker()
            self._measure = partial(
                measured_facts, problem, self._sizes, settings, backend, command=command, sandbox=build_pool.sandbox.text
            )
            self._facts = self._measure(utc)
            self._judge = self._judge_with(references, model_seed)
        except BaseException:
            self._prestart.drop()
            raise
        self._to_come, self._following = list[Entry](), None  # the entries left but for that which is known to be next, and that
        self.lost: str | None = None  # why this device can judge nothing any more
        self._check_only = False
        self._rows = RowsOverBaseline(problem.baseline)

    def _references(self) -> tuple[list[Reference], int]:
        """The reference at all sizes, and the seed under which its model and the candidates' are constructed."""
        model_seed = secrets.randbits(31)
        return references_at_all_sizes(self._problem, self._sizes, self._backend, self._settings, model_seed), model_seed

    def _judge_with(self, references: Sequence[Reference], model_seed: int) -> EntryJudge:
        self._control.context = context = JudgingContext(
            self._backend, references, self._settings, self._facts.limits.floor_us if self._facts.limits else None, model_seed,
            self._wanted_extras, self._prestart.wait_until_open, lambda: bool(self._following or self._to_come),
        )
        return EntryJudge(context, self._control, self._examiner)

    def judge_alone(
        self, candidate: Candidate, build_pool: BuildPool, utc: str, *, check_only: bool = False, budget_s: float = math.inf
    ) -> None:
        """Judge one more candidate, built by `build_pool`, in a device run that goes on. The control is judged but once. It
        is timed again for a moment, as canaries are measured, when it is a minute old or was timed beside compilers that
        have ended; what needs no launch, or with `check_only` no time, needs neither.

        Parameters are drawn anew for each, since what an answer told of the last ones must be of no use to the next. Its
        build, unless that was kept, and its row may take `budget_s` together.
        """
        self._build_pool = self._control.build_pool = build_pool
        self._facts = replace(self._facts, run_id=secrets.token_hex(8), utc=utc)
        self.lost = self.lost and self._backend.unhealthy()
        is_settled = build_pool.is_settled(candidate)
        is_old = time.monotonic() - self._facts.canaries_at_s > CANARIES_KEEP_S
        if not (is_settled or self.lost) and is_old and build_pool.is_quiet:
            with suppress(RuntimeError):  # a device that is full or gone: what is tried on it says so, in its row
                self._facts = self._measure(utc)
        if is_settled:
            self._prestart.drop()  # the control's worker would hold the device until a candidate can be launched
            self._judge_and_baseline(candidate, None)
            return
        if self._judge.has_parameters:
            self._judge = self._judge_with(*self._references())
        self._check_only = check_only
        if budget_s < math.inf and not (build := build_pool.build_of(candidate)).cached:
            budget_s -= build.seconds
        self._judge.budget_s = budget_s
        if check_only:
            pass
        elif self._control.control is None or self._rows.is_unsure:
            self._judge_and_baseline(BASELINES["eager"], None)
        elif self._control.is_old or self._control.could_be_quieter:
            self._control.renew()
        try:
            self._judge_and_baseline(candidate, None)
        finally:
            self._judge.forget_ready()  # nobody knows when the next one comes

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Judge the control first, then the other baselines and the candidates as they get ready; each gets its record."""
        entries: list[Entry] = [*baselines_for(self._problem, self._backend.kind), *candidates]
        self.start_early(entries)
        self._to_come = list(entries)
        self.judge_each(WorkQueue(entries).alone(self._could_begin, is_slow_to_start, self._wait_for_one))

    def start_early(self, entries: Iterable[Entry]) -> None:
        """Start those among `entries` that take seconds to start; they are judged last."""
        self._prestart.start_slow(entries, self._build_pool)

    def _could_begin(self, entry: Entry) -> bool:
        return self._fault_of(entry) is not None or self._build_pool.is_ready(entry)

    def _wait_for_one(self, entries: Sequence[Entry]) -> None:
        candidates = [entry for entry in entries if isinstance(entry, Candidate)]
        self._progress.status(candidates[0].name, "building")
        self._build_pool.wait_for_one(candidates)

    def judge_each(self, entries: Iterable[tuple[Entry, Entry | None]]) -> None:
        """Judge entry after entry, each given with the one that follows it, as far as that is known."""
        try:
            for entry, following in entries:
                if self._control.could_be_quieter:
                    self._control.renew()
                self._judge_and_baseline(entry, following)
        finally:
            self._prestart.drop()
            self._judge.forget_ready()

    def _judge_and_baseline(self, entry: Entry, following: Entry | None) -> None:
        """Judge `entry` and record it; after eager the baseline of the user's own, which all other rows are over."""
        own = self._problem.baseline if entry is BASELINES["eager"] else None
        self._judge_entry(entry, own or following)
        if own is not None:
            try:
                self._judge_entry(own, following)
            finally:
                self._write_rows()

    def _judge_entry(self, entry: Entry, following: Entry | None) -> None:
        try:
            record, samples = self._judged(entry, following)
        except (HarnessError, OSError):  # what is the machine's the next entry would meet too
            raise
        except Exception as error:  # ours: that row says so and has no rank, and the run goes on
            judgement = _own_defect(error)
            record, samples = self._recorded(entry, judgement.verdict, None, judgement)
        self._rows.add(record, samples, is_own=entry is self._problem.baseline)
        if self._problem.baseline is None or entry is not BASELINES["eager"]:
            self._write_rows()  # else its speedup over the baseline is known when that is judged, which is next

    def _judged(self, entry: Entry, following: Entry | None) -> tuple[Record, Mapping[str, Any]]:
        self._to_come = [each for each in self._to_come if each is not entry and each is not following]
        self._following = following
        build = judgement = None
        verdict = self._fault_of(entry)
        if verdict is None and isinstance(entry, Candidate):
            if not self._build_pool.is_ready(entry):
                self._progress.status(entry.name, "building")
            build = self._build_pool.build_of(entry)
            verdict = build.verdict
        if verdict is None:
            judgement = self._judge_building_more(entry, following)
            verdict = judgement.verdict
            if isinstance(entry, Candidate):
                build = self._build_pool.build_of(entry)
                verdict = with_suspicions(verdict, suspicions_of(entry), judgement)
                if not entry.is_as_read:  # its process read the file by itself, and the record is of what was read here
                    verdict, judgement = saved_meanwhile(entry), None
        return self._recorded(entry, verdict, build, judgement)

    def _fault_of(self, entry: Entry) -> Verdict | None:
        if isinstance(entry, Candidate) and entry.fault is not None:
            return Verdict(Status.BUILD_FAILED, entry.fault_code, entry.fault)
        if self.lost is not None:
            return Verdict(Status.SKIPPED, ReasonCode.DEVICE_LOST, f"{self.lost}; run again once it is mended")
        return None

    def _judge_building_more(self, entry: Entry, following: Entry | None) -> Judgement:
        """Try `entry`; anew each time that it asks for extensions that its build had not made, once those are built."""
        judgement = self._judge_built(entry, following, may_ask=isinstance(entry, Candidate))
        for left in reversed(range(_MOST_BUILT_ANEW)):
            if not judgement.unbuilt:
                break
            self._progress.status(entry.name, "building what it asked for as it ran")
            refused = self._build_pool.build_asked(entry, judgement.unbuilt)
            if refused is not None and not may_go_on(refused):
                return Judgement(refused)
            judgement = self._judge_built(entry, following, may_ask=left > 0)
            if refused is not None and judgement.verdict.reason_code in _FOR_WANT_OF_IT:
                return Judgement(refused)
            if refused is not None:
                judgement.warnings.append(WENT_ON)
        return judgement

    def _judge_built(self, entry: Entry, following: Entry | None, *, may_ask: bool = False) -> Judgement:
        prepared, starter = self._build_pool.prepared(entry)
        if isinstance(entry, Candidate):
            prepared = replace(prepared, may_ask=may_ask, check_only=self._check_only)
        if not prepared.is_control and not prepared.check_only:
            self._control.time_elsewhere()
        starter = self._prestart.take(entry) or starter
        try:
            self._prestart.start(following, self._build_pool, open_device=self._backend.has_room_for_waiting())
            self._prestart.start(self._likely_after_that(), self._build_pool)
            judgement = self._judge.judge(
                prepared, [starter.start] * self._settings.workers, lambda text: self._progress.status(entry.name, text)
            )
        except HarnessError:
            raise
        except Exception as error:  # ours, or what a hostile process sent got past the session's checks
            judgement = _own_defect(error)
        finally:
            starter.close()
        self._control.learn_from(prepared, judgement)
        self.lost = self._backend.unhealthy()
        # One that is just opening the device is counted with all that it will hold of its memory.
        left_bytes = 0 if self.lost else self._backend.left_bytes(self._prestart.open_count())
        if left_bytes:
            self._progress.note(f"{entry.name} is gone, but {left_bytes / 1e9:.1f} GB of the GPU's memory are still held")
        return judgement

    def _likely_after_that(self) -> Entry | None:
        """What may come after the one that follows: it imports already."""
        return next((each for each in self._to_come if not is_slow_to_start(each) and self._could_begin(each)), None)

    def _recorded(
        self, entry: Entry, verdict: Verdict, build: Build | None, judgement: Judgement | None
    ) -> tuple[Record, Mapping[str, Any]]:
        is_candidate = isinstance(entry, Candidate)
        record = record_of(
            self._facts, name=entry.name, role=entry.role, source_hash=entry.source_hash if is_candidate else None,
            language=entry.language if is_candidate else "torch", verdict=verdict, build=build, judgement=judgement,
            parameters=entry.parameters if is_candidate else None, problem_notes=self._judge.problem_notes,
        )
        return record, samples_of(judgement, build)

    def _write_rows(self) -> None:
        control = self._control.control
        for record, samples in self._rows.taken(control.apart if control else 0.0):
            trouble = self._records.append(record, samples)
            if trouble:
                self._progress.note(trouble)
            self._progress.done(record)


def _own_defect(error: Exception) -> Judgement:
    """The judgement on an entry over which this software itself failed."""
    return Judgement(of_own_defect(error), traceback=traceback_of(error))
