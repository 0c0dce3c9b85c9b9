"""Which verdict an entry gets: how often it is tried, and what its attempts amount to. Every failure becomes a verdict here.

An attempt that leaves its process, its clock or the control beside it in doubt is followed by others. `evaluate` says
what happens in one, and the stages raise the failures.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from harness.judge import interpreter
from harness.judge.control_keeper import ControlKeeper
from harness.judge.evaluate import check_only, evaluate
from harness.judge.judgement import Judgement, Prepared, Start, Tell
from harness.judge.machine_lacks import for_want_here
from harness.judge.published_speedup import conclude
from harness.judge.references import no_room, small_references
from harness.judge.sanitize import sanitize
from harness.judge.stages import Attempt, JudgingContext
from harness.launch import failures
from harness.launch.failures import Failed
from harness.model.files.text_files import shown
from harness.model.problem_notes import ProblemNote
from harness.model.verdict import OK, ReasonCode, Status, Verdict
from harness.protocol.cuda_driver import DriverError
from harness.reference.memory_plan import sentence_of
from harness.reference.reference_model import Reference
from harness.tools.sanitizer.examination import Examiner

_OF_THREE_ATTEMPTS = 2
_TIMES_CONTROLS_ROW = 10


class EntryJudge:
    """Judges entries of a problem on a device, as `context` has them, beside `control`, within `budget_s` a row."""

    def __init__(self, context: JudgingContext, control: ControlKeeper, examiner: Examiner | None = None) -> None:
        self._context, self._control, self._examiner = context, control, examiner
        self._backend, self._references, self._settings = context.backend, context.references, context.settings
        self._small: list[Reference] | None = None  # what Triton's interpreter is given, once it is asked for
        self.budget_s = self._ends_s = math.inf

    @property
    def _row_budget_s(self) -> float:
        """How long a candidate's row may take: what takes eager itself long takes candidates long too."""
        return min(self.budget_s, max(self._settings.row_budget_s, _TIMES_CONTROLS_ROW * self._control.row_s))

    @property
    def _is_late(self) -> bool:
        return time.monotonic() > self._ends_s

    @property
    def has_parameters(self) -> bool:
        """Whether anything about the reference follows from the seed that its model was constructed under."""
        return any(reference.state or reference.init for reference in self._references)

    @property
    def problem_notes(self) -> tuple[ProblemNote, ...]:
        """What is told of the problem at the timed sizes."""
        return tuple(self._references[0].notes)

    def judge(self, prepared: Prepared, workers: Sequence[Start], tell: Tell) -> Judgement:
        """Try `prepared` once for each of `workers` (each starts a fresh process); never raises Failed.

        Where its clock is in doubt, or was rejected beside a control that was timed once, both are timed again. Two
        attempts of three decide: a machine that was disturbed for a moment is nobody's fault, and a lie at the border of
        what is seen gets no three draws of which one suffices. The second of these is beside the same control, unless
        that allows more than the one before.
        A single process in which eager took longer or shorter than two usually differ by, or whose queue came late, is
        followed by another, which decides: what a process adds to a short call stays for its life. Nothing is begun anew
        once the budget of the row is spent. What Triton's interpreter runs, or is only checked, has no clock to doubt.
        """
        try:
            return self._judge_until_decided(prepared, workers, tell)
        finally:
            self._control.build_pool.go_on()

    def _judge_until_decided(self, prepared: Prepared, workers: Sequence[Start], tell: Tell) -> Judgement:
        if prepared.stand_in_gpu is not None or prepared.check_only:
            self._ends_s = time.monotonic() + self._row_budget_s
            return self._judge_once(prepared, workers, tell)
        if self._control.control is None and not prepared.is_baseline:
            self._control.renew_when_quiet()
        former = self._control.control
        began_s = time.monotonic()
        self._ends_s = math.inf if prepared.is_baseline else began_s + self._row_budget_s
        judgement = self._judge_once(prepared, workers, tell)
        if prepared.is_control:
            self._control.row_s = time.monotonic() - began_s
        is_one = judgement.verdict == OK and len(workers) == 1
        if is_one and judgement.timings[0].deserves_another_process and not self._is_late:
            tell("what its process adds to a call is in doubt: once more in another")
            judgement = self._once_more(judgement, prepared, workers, tell)
        # A control that was disturbed itself leaves every row rejected until it is timed again.
        rejections = int(judgement.beside_control and judgement.verdict.status is Status.REJECTED)
        doubts, clean = int(_is_doubted(judgement)) + rejections, 0
        while 0 < doubts < _OF_THREE_ATTEMPTS and clean < _OF_THREE_ATTEMPTS and not self._is_late:
            doubt = judgement.verdict.reason or "without a fault this time, which two looks of three have to be"
            is_renewed = not clean or self._control.allows_more_than(former)
            tell(f"in doubt ({doubt}): {'timing the control again, and then it' if is_renewed else 'once more'}")
            if is_renewed:
                renewed_s = time.monotonic()
                self._control.renew_when_quiet()
                self._ends_s += time.monotonic() - renewed_s  # the harness's own time, in which it may wait for compilers
            judgement = self._once_more(judgement, prepared, workers, tell)
            if _is_doubted(judgement):
                doubts += 1
            elif judgement.verdict == OK:
                clean += 1
            else:
                break
        if judgement.verdict == OK and self._control.control is None and not prepared.is_baseline:
            judgement.verdict = Verdict(
                Status.UNSURE, ReasonCode.NOISY,
                "its outputs are right, but eager itself could not be timed here as a control, so its clock was held "
                "against nothing; look at eager's row, and run again",
            )
        return judgement

    def _once_more(self, former: Judgement, prepared: Prepared, workers: Sequence[Start], tell: Tell) -> Judgement:
        """Try it again; where the row's budget ends meanwhile, what the `former` said stands."""
        judgement = self._judge_once(prepared, workers, tell)
        return former if judgement.verdict.reason_code is ReasonCode.ROW_TIMEOUT else judgement

    def _judge_once(self, prepared: Prepared, workers: Sequence[Start], tell: Tell) -> Judgement:
        """Try it, and once more in each smaller step of memory as long as there was no room.

        Where it was a candidate's worker that had none, the smallest step decides whether it needs too much itself, and what
        comes after it is judged as before.
        """
        before, is_candidates = [reference.memory for reference in self._references], False
        while True:
            judgement = self._judge_at_this_step(prepared, workers, tell)
            if judgement.verdict.reason_code is not ReasonCode.DEVICE_MEMORY:
                break
            is_candidates |= not judgement.lacked_room and not prepared.is_baseline
            if not self._have_less(to_the_last=not judgement.lacked_room):
                break
            tell(f"no room on the device: once more with {sentence_of(self._references[0].memory)}")
        if is_candidates:
            for reference, plan in zip(self._references, before):
                reference.restore_memory(plan)
        return judgement

    def _have_less(self, *, to_the_last: bool) -> bool:
        """Go down one step of memory, or all of them; False where there is none below."""
        self._give_back()
        taken = False
        while any([reference.have_less() for reference in self._references]):
            taken = True
            if not to_the_last:
                break
        return taken

    def _judge_at_this_step(self, prepared: Prepared, workers: Sequence[Start], tell: Tell) -> Judgement:
        judgement = Judgement(truth=self._references[0].truth_name, terms=self._references[0].terms)
        judgement.memory, judgement.ends_s = self._references[0].memory, self._ends_s
        try:
            if prepared.check_only and prepared.stand_in_gpu is None:
                judgement.verdict = check_only(self._attempt_of(prepared, workers[0], judgement, tell))
            elif prepared.stand_in_gpu is None:
                self._attempt_in_each(prepared, workers, judgement, tell)
            else:
                judgement.verdict = self._interpreted(prepared, workers[0], judgement, tell)
        except Failed as failure:
            judgement.verdict = for_want_here(prepared, failure.verdict, self._backend.limits) or failure.verdict
            judgement.beside_control = failure.beside_control
            judgement.unbuilt = failure.calls if isinstance(failure, failures.Unbuilt) else []
            if failure.evidence is not None:
                problem = self._references[0].problem
                paths = {"problem": shown(problem.path), "candidate": shown(Path(prepared.origin or prepared.path))}
                judgement.evidence = replace(failure.evidence, paths=paths)
        except (torch.OutOfMemoryError, DriverError) as error:
            cause = str(error).splitlines()[0]
            judgement.verdict = Verdict(
                Status.OUT_OF_MEMORY, ReasonCode.DEVICE_MEMORY, no_room(self._references[0].memory, self._backend, cause)
            )
            judgement.lacked_room = True
        judgement.peak_bytes = self._backend.peak_bytes()
        if judgement.lacked_room:  # only now: the error kept what its frames held
            self._give_back()
        return judgement

    def _attempt_in_each(self, prepared: Prepared, workers: Sequence[Start], judgement: Judgement, tell: Tell) -> None:
        """Try it in a process of each of `workers`, and draw the conclusion. Raises Failed."""
        for position, start in enumerate(workers):
            if position and (self._is_late or judgement.timing.is_brief):
                break
            tell_of_worker = tell if len(workers) == 1 else partial(_tell_of_worker, tell, position + 1, len(workers))
            try:
                evaluate(self._attempt_of(prepared, start, judgement, tell_of_worker, position == 0))
            except Failed as failure:
                if not position or failure.verdict.reason_code is not ReasonCode.ROW_TIMEOUT:
                    raise
                break  # what the processes before have shown stands
        conclude(prepared, judgement, self._settings, self._control.pool.kernels)
        if self._examiner is not None and not prepared.is_baseline:
            sanitize(self._examiner, prepared, self._references, self._context.model_seed, judgement, tell)

    def _attempt_of(
        self, prepared: Prepared, start: Start, judgement: Judgement, tell: Tell, first: bool = True
    ) -> Attempt:
        """Start a worker for it."""
        return Attempt(self._context, prepared, self._context.session(start), judgement, tell, self._control.now, first)

    def _interpreted(self, prepared: Prepared, start: Start, judgement: Judgement, tell: Tell) -> Verdict:
        """The verdict of Triton's interpreter, at the sizes that are small enough for it. Raises Failed."""
        if self._small is None:
            self._small = small_references(self._references, self._backend.available_bytes())
        return interpreter.interpret(
            self._backend, prepared, start, self._small, self._context.model_seed, self._settings, judgement, tell
        )

    def forget_ready(self) -> None:
        """Give back the memory of what is ready for an entry that may not come."""
        self._references[0].forget_ready()

    def _give_back(self) -> None:
        """Leave nothing of a failure on the device."""
        self.forget_ready()
        gc.collect()  # errors that were handed on are in cycles with their frames
        self._backend.forget_launches()
        self._backend.release_memory()


def _tell_of_worker(tell: Tell, number: int, workers: int, text: str) -> None:
    tell(f"{text}, in process {number} of {workers}")


def _is_doubted(judgement: Judgement) -> bool:
    return judgement.verdict.reason_code is ReasonCode.NOISY
