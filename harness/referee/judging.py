"""One contestant from load to judgement: checked, timed, traced, and every failure turned into a verdict.

The order is the cheap and damning first: form and values over all families and sizes, then the clock, then whose
kernels ran. Nothing that was not verified is timed, and nothing is reported that was not measured.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from harness.device.bench import Bench
from harness.inputs.sets import InputSet
from harness.provenance.kinds import Provenance, claiming_least
from harness.reading.text_files import shown
from harness.referee import checking, extras, failures
from harness.referee.clock_checks import Control, check_baseline, check_times, reconcile
from harness.referee.failures import Failed
from harness.referee.judgement import Contestant, Judgement, published
from harness.referee.loading import Loader
from harness.referee.reference import Reference
from harness.referee.sanitizing import sanitize
from harness.referee.session import Session
from harness.referee.turns import Launches
from harness.referee.timed import Timing
from harness.referee.timing import Rounds
from harness.referee.tracing import trace
from harness.sandbox import processes
from harness.sandbox.spawn import Child
from harness.sanitizer.examining import Examiner
from harness.settings import Settings
from harness.statistics import call
from harness.verdict import OK, ReasonCode, Status, Verdict
from harness.wire.cuda_driver import DriverError

_ALONE_LAUNCHES = 2
_CONTROL_BUDGET_S = 1.0
_OF_THREE_LOOKS = 2


class Judge:
    """Judges contestants of one problem on one device.

    `references` has the timed sizes first. `control` is what the eager control left, once that has been judged; `renew`
    times it again. `wait_for_others` returns once no process of the harness's own is busy, with the pids of those that
    wait for their turn.
    """

    def __init__(
        self, bench: Bench, references: Sequence[Reference], settings: Settings, floor_us: float | None,
        model_seed: int, examiner: Examiner | None = None, wanted_extras: Collection[str] = (),
        wait_for_others: Callable[[], Collection[int]] = tuple,
    ) -> None:
        self._bench, self._references, self._settings = bench, references, settings
        self._floor_us, self._model_seed, self._examiner = floor_us, model_seed, examiner
        self._wanted_extras, self._wait_for_others = wanted_extras, wait_for_others
        self.control: Control | None = None
        self.renew: Callable[[], None] | None = None

    @property
    def has_parameters(self) -> bool:
        """Whether anything about the reference follows from the seed that its model was constructed under."""
        return any(reference.state or reference.init for reference in self._references)

    def judge(
        self, contestant: Contestant, players: Sequence[Callable[[], Child]], tell: Callable[[str], None]
    ) -> Judgement:
        """Play `contestant` once for each of `players` (each starts a fresh process); never raises Failed.

        Where the clocks are doubted, both the control and the contestant are timed again, in fresh processes, and two
        looks of three decide: a machine that was disturbed for a moment is nobody's fault, and a lie at the border of
        what is seen gets no three draws of which one suffices. Nobody is rejected beside a control that was timed once.
        One that was given a single process, in which eager took longer or shorter than two processes usually differ by,
        is judged in another, whatever that says: what a process adds to a short call stays for its life.
        """
        if self.control is None and self.renew is not None and not contestant.is_baseline:
            self.renew()
        judgement = self._judge_once(contestant, players, tell)
        if judgement.verdict == OK and len(players) == 1 and judgement.timings[0].apart_as_processes:
            tell("its process differs from the referee's: once more in another")
            judgement = self._judge_once(contestant, players, tell)
        if judgement.beside_control and judgement.verdict.status is Status.REJECTED and self.renew is not None:
            # The control itself may have been disturbed, and with it every row until it is timed again.
            tell("timing the control again, and then it")
            self.renew()
            judgement = self._judge_once(contestant, players, tell)
        doubts, clean = int(_is_doubted(judgement)), 0
        while self.renew is not None and 0 < doubts < _OF_THREE_LOOKS and clean < _OF_THREE_LOOKS:
            tell("timing the control again, and then it")
            self.renew()
            judgement = self._judge_once(contestant, players, tell)
            if _is_doubted(judgement):
                doubts += 1
            elif judgement.verdict == OK:
                clean += 1
            else:
                break
        if judgement.verdict == OK and self.control is None and self.renew is not None and not contestant.is_baseline:
            judgement.verdict = Verdict(
                Status.UNSURE, ReasonCode.NOISY,
                "its outputs are right, but eager itself could not be timed here as a control, so its clock was held "
                "against nothing; look at eager's row, and run again",
            )
        return judgement

    def _judge_once(
        self, contestant: Contestant, players: Sequence[Callable[[], Child]], tell: Callable[[str], None]
    ) -> Judgement:
        judgement = Judgement(truth=self._references[0].truth_name, terms=self._references[0].terms)
        try:
            for position, start in enumerate(players):
                self._play(contestant, start, judgement, _told_of(tell, position, len(players)), first=position == 0)
            self._conclude(contestant, judgement)
            if self._examiner is not None and not contestant.is_baseline:
                sanitize(self._examiner, contestant, self._references, self._model_seed, judgement, tell)
        except Failed as failure:
            judgement.verdict = self._for_the_cpu(contestant, failure.verdict) or failure.verdict
            judgement.beside_control = failure.beside_control
            if failure.evidence is not None:
                problem = self._references[0].problem
                paths = {"problem": shown(problem.path), "candidate": shown(Path(contestant.origin or contestant.path))}
                judgement.evidence = replace(failure.evidence, paths=paths)
        except (torch.OutOfMemoryError, DriverError) as error:
            said = str(error).splitlines()[0]
            reason = f"this device has no room for its inputs, outputs and their truths at these sizes ({said})"
            judgement.verdict = Verdict(Status.OUT_OF_MEMORY, ReasonCode.DEVICE_MEMORY, reason)
            self._bench.release_memory()
        return judgement

    def renew_control(self, contestant: Contestant, start: Callable[[], Child]) -> None:
        """Time the control once more, briefly, for its clocks alone; a failure leaves those of before."""
        settings, reference = self._settings, self._references[0]
        session = Session(start(), self._bench, settings.load_timeout_s, settings.launch_timeout_s)
        try:
            Loader(session, contestant, self._model_seed)(reference)
            brief = replace(settings, budget_s=min(settings.budget_s, _CONTROL_BUDGET_S))
            timing = Rounds(session, self._bench, reference, brief, lambda sets, made, only=None: None, set()).run()
            if timing.candidate_us:
                self.control = Control.of(timing)
        except (Failed, RuntimeError):  # no room on the device is a RuntimeError
            self._bench.release_memory()
        finally:
            session.stop()

    def _for_the_cpu(self, contestant: Contestant, verdict: Verdict) -> Verdict | None:
        """C++ that refuses CUDA tensors in so many words is for another device, not wrong."""
        refused = verdict.reason_code is ReasonCode.RAISED and re.search(r"\bcpu\b", verdict.reason, re.IGNORECASE)
        if contestant.language != "cpp" or self._bench.kind == "cpu" or not refused:
            return None
        reason = f"it is C++ for the CPU ({verdict.reason}); --device cpu runs it"
        return Verdict(Status.SKIPPED, ReasonCode.NEEDS_CPU, reason)

    def _play(
        self, contestant: Contestant, start: Callable[[], Child], judgement: Judgement, tell: Callable[[str], None],
        *, first: bool,
    ) -> None:
        settings = self._settings
        session = Session(start(), self._bench, settings.load_timeout_s, settings.launch_timeout_s)
        try:
            tell("loading")
            reload = Loader(session, contestant, self._model_seed)
            self._check(session, contestant, judgement, reload, tell, first=first)
            tell("timing")
            timing = self._time(session, contestant, judgement)
            if timing.candidate_us:
                if first:
                    judgement.clocks = reconcile(timing, self.control, None)
                check_times(timing, self._bench.kind, self._floor_us, self.control)
            judgement.timings.append(timing)
            judgement.warnings += [note for note in timing.notes if note not in judgement.warnings]
            if not contestant.is_baseline:
                # In each player: one that knows that it is not the first could use a library where nobody looks.
                tell("tracing kernels")
                judgement.provenance = self._trace(session, contestant, judgement)
            if first and timing.candidate_us:
                self._reconcile(timing, judgement)
            if first and self._wanted_extras and timing.candidate_us:
                tell("measuring what was asked for besides")
                judgement.extras = extras.measure(
                    session, self._references[0], self._bench, contestant.precision_class, timing.time_us,
                    self._wanted_extras,
                )
                judgement.warnings += judgement.extras.notes
        finally:
            session.stop()
        if timing.candidate_us:
            check_baseline(timing, self._bench.kind, self.control, self._eager_alone_us)

    def _check(
        self, session: Session, contestant: Contestant, judgement: Judgement, reload: Loader,
        tell: Callable[[str], None], *, first: bool,
    ) -> None:
        references = self._references if first and not contestant.is_baseline else self._references[:1]
        first_timeout_s = self._settings.launch_timeout_s + self._settings.load_timeout_s
        try:
            reload(references[0])
            tell("checking")
            timeout_s = self._settings.build_timeout_s if contestant.is_baseline else first_timeout_s
            found = judgement.figures if first else []
            refused = checking.check_all(
                session, references, self._settings.check_launches, contestant.precision_class, reload, timeout_s, found
            )
            checking.call_once(session, references[0], contestant.precision_class, reload, timeout_s)
            if refused:
                judgement.warnings.append(f"it refuses sizes that the problem names: {'; '.join(refused)}")
        except Failed as failure:
            mismatch = reload.state_mismatch
            wrong = failure.verdict.status in (Status.INCORRECT, Status.IMPRECISE)
            if mismatch and wrong and failure.verdict.reason_code is not ReasonCode.RAISED:
                reason = f"{mismatch}; with it {failure.verdict.reason}"
                raise failures.failed(
                    Status.INCORRECT, ReasonCode.STATE_MISMATCH, reason, failure.evidence
                ) from None
            raise
        if first and reload.state_mismatch:
            judgement.warnings.append(
                f"its outputs are right, but its state is not the reference's: {reload.state_mismatch}"
            )

    def _time(self, session: Session, contestant: Contestant, judgement: Judgement) -> Timing:
        reference = self._references[0]

        def verify(sets: Sequence[InputSet], made: Launches, only: Collection[int] | None = None) -> None:
            figures = checking.verify(session, reference, sets, made, contestant.precision_class, only=only)
            checking.decide(figures, reference, contestant.precision_class)

        players = session.child.pid, *self._wait_for_others()
        own_pids = {*players, *processes.descendants(*players)}
        # Asked of baselines alone: a candidate is not told when its timing begins.
        before = session.compilations() if contestant.is_baseline else 0
        timing = Rounds(
            session, self._bench, reference, self._settings, verify, own_pids, contestant.strict_inside
        ).run()
        if contestant.is_baseline:
            timing.notes += compilation_notes(contestant.name, before, session.compilations())
        return timing

    def _eager_alone_us(self) -> float:
        """Eager's time on the timed sizes with no player beside it, in µs."""
        reference = self._references[0]
        sets = [reference.draw() for _ in range(_ALONE_LAUNCHES)]
        self._bench.synchronize()
        local = self._bench.local_launches(reference.model, sets, hold=self._bench.kind != "cpu")
        return statistics.median(local.times_us[1:])

    def _trace(self, session: Session, contestant: Contestant, judgement: Judgement) -> Provenance:
        traced = trace(session, self._bench.kind, self._references[0], contestant, judgement.timings[-1])
        found = claiming_least(judgement.provenance, traced)
        judgement.warnings += [note for note in found.notes if note not in judgement.warnings]
        return found

    def _reconcile(self, timing: Timing, judgement: Judgement) -> None:
        """Keep what the three clocks say of a call, and note it where they are far apart."""
        traced = judgement.provenance
        judgement.clocks = reconcile(timing, self.control, traced.busy_us if traced else None)
        apart = judgement.clocks.disagreement(self._bench.kind)
        judgement.warnings += [apart] if apart else []

    def _conclude(self, contestant: Contestant, judgement: Judgement) -> None:
        """The published speedup: with several players, the wider of the within and the between interval."""
        estimated = [timing.speedup for timing in judgement.timings if timing.speedup is not None]
        first = judgement.timing
        dropped = sum(timing.dropped for timing in judgement.timings)
        kept = sum(len(timing.log_ratios) for timing in judgement.timings)
        if not estimated or dropped > kept:
            raise failures.failed(
                Status.UNSURE, ReasonCode.THROTTLED,
                f"{dropped} of {dropped + kept} rounds were dropped because the GPU slowed down for heat or its power "
                "supply; let it cool and run again",
            )
        judgement.speedup, judgement.word = estimated[0], first.word
        if len(estimated) > 1:
            judgement.speedup = published(judgement.timings, self._settings.confidence)
            judgement.word = call(judgement.speedup, min(first.time_us, first.baseline_time_us))


def compilation_notes(name: str, before: int, after: int) -> list[str]:
    """What is said of a baseline whose process had compiled so many graphs before its rounds and after them.

    All of them before, and at least one where it is torch.compile, is how it should be.
    """
    if after > before:
        graphs = f"{after - before} more graph{'s' if after - before > 1 else ''}"
        return [f"torch.compile compiled {graphs} while it was timed: that is in its times"]
    if name == "torch.compile" and not after:
        return ["torch.compile compiled nothing: what was timed is eager"]
    return []


def _told_of(tell: Callable[[str], None], position: int, players: int) -> Callable[[str], None]:
    """`tell`, with the number of the process where there are several."""
    return tell if players == 1 else lambda text: tell(f"{text}, in process {position + 1} of {players}")


def _is_doubted(judgement: Judgement) -> bool:
    return judgement.verdict.reason_code is ReasonCode.NOISY
