"""The stages that an entry passes in one worker process, each a function of the attempt; `evaluate` has their order.

A stage adds to the judgement what it sees, and raises Failed for what is wrong. It says itself whom it passes over:
baselines, a call without a time, or a worker that is not the first of its entry.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from harness.attribution.kernel_ownership import least_of_processes
from harness.attribution.recording import Unproven
from harness.audit import clock_audit
from harness.device.backend import Backend
from harness.judge import check, extras
from harness.judge.judgement import Judgement, Prepared, Start, Tell
from harness.judge.kernel_trace import other_streams, recorded_launches, timed_windows, trace
from harness.judge.loader import Loader, blaming_the_state, moves_alike
from harness.launch.conversation import Launches
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.baselines import compilation_notes
from harness.model.settings import Settings
from harness.model.verdict import ReasonCode
from harness.reference.inputs.sets import InputSet
from harness.reference.memory_plan import memory_notes
from harness.reference.reference_model import Reference
from harness.sandbox import processes
from harness.timing.control import Control, reconcile
from harness.timing.doubts import is_references, is_ungated, told_why_it_scatters
from harness.timing.estimate import count_unvouched, span_usual_baseline
from harness.timing.rounds import Rounds
from harness.timing.stability import check_evenness, check_spread
from harness.timing.timings import Timing

# Two launches, the first a lead-in, so often: a single time would by chance be fast or slow on a busy machine.
_ALONE_LAUNCHES, _ALONE_TIMES = 2, 3
_REORDERED = (
    "an output lies in memory in another order of dimensions than the reference's (channels_last, say); its copy to that "
    "order is in the timed window"
)


@dataclass(frozen=True)
class JudgingContext:
    """What all attempts on one problem and device share. `references` has the timed sizes first.

    `wait_for_others` returns once no process of the harness's own is busy, with the pids of those that wait their turn.
    `expects_another` says whether an entry follows.
    """

    backend: Backend
    references: Sequence[Reference]
    settings: Settings
    floor_us: float | None
    model_seed: int
    wanted_extras: Collection[str] = ()
    wait_for_others: Callable[[], Collection[int]] = tuple
    expects_another: Callable[[], bool] = lambda: False

    def session(self, start: Start) -> Session:
        """A session with the worker that `start` starts."""
        return Session(start(), self.backend, self.settings.load_timeout_s, self.settings.launch_timeout_s)

    def make_ready(self) -> None:
        """Draw what the next entry is checked with, and find its truths, while a killed worker goes and the GPU is idle."""
        if self.backend.limits.is_host or not self.expects_another():  # on a CPU nothing is waited for
            return
        reference = self.references[0]
        try:
            reference.make_ready(check.families_checked(reference, self.settings.check_launches))
        except Exception:  # whoever is checked with it will say so
            reference.forget_ready()
            with suppress(RuntimeError):
                self.backend.release_memory()


@dataclass
class Attempt:
    """An entry in one worker process, and the `judgement` that its stages add to.

    Only the `first` of an entry gives error figures, those of sizes that are not timed among them, the three clocks of a
    call, and what was asked for besides. `control` is what eager left, None before that was timed.
    """

    context: JudgingContext
    prepared: Prepared
    session: Session
    judgement: Judgement
    tell: Tell
    control: Control | None = None
    first: bool = True
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        self.backend, self.settings, self.limits = self.context.backend, self.context.settings, self.context.backend.limits
        self.reference = self.context.references[0]
        self.loader = Loader(self.session, self.prepared, self.context.model_seed)

    @property
    def is_candidate(self) -> bool:
        return not self.prepared.is_baseline

    @property
    def is_timed(self) -> bool:
        """Whether a round was kept: else all that is left to say is that none was."""
        return bool(self.timing.candidate_us)

    def warn(self, notes: Sequence[str]) -> None:
        """Add warnings, each once."""
        self.judgement.warnings += [note for note in notes if note not in self.judgement.warnings]


def load(attempt: Attempt) -> None:
    """Have the worker load the file and construct the model for the timed sizes."""
    attempt.tell("loading")
    attempt.session.ends_s = attempt.judgement.ends_s
    attempt.loader(attempt.reference)


def check_outputs(attempt: Attempt) -> None:
    """Hold outputs against the truth, over all families; of a candidate's first worker at all sizes."""
    session, settings, judgement, prepared = attempt.session, attempt.settings, attempt.judgement, attempt.prepared
    is_whole = attempt.first and attempt.is_candidate
    references = attempt.context.references if is_whole else [attempt.reference]
    timeout_s = settings.launch_timeout_s + settings.load_timeout_s if attempt.is_candidate else settings.build_timeout_s
    with blaming_the_state(attempt.loader, judgement if attempt.first else None):
        attempt.tell("checking")
        refused = check.check_all(
            session, references, settings.check_launches, prepared.precision_class, attempt.loader, timeout_s,
            judgement.figures if attempt.first else [],
        )
        if len(references) > 1:
            check.call_once(session, attempt.reference, prepared.precision_class, attempt.loader, timeout_s)
        attempt.warn([_REORDERED] if session.reordered else [])
        if is_whole:
            judgement.state_moved = moves_alike(session, attempt.reference, timeout_s)
        attempt.warn([f"it refuses sizes that the problem names: {'; '.join(refused)}"] if refused else [])


def time_rounds(attempt: Attempt) -> None:
    """Time it beside the baseline. What is right is to have its time: the row's budget ends no launch any more."""
    attempt.tell("timing")
    session, reference, prepared, control = attempt.session, attempt.reference, attempt.prepared, attempt.control
    session.ends_s = math.inf

    def verify(sets: Sequence[InputSet], made: Launches, only: Collection[int] | None = None) -> None:
        check.refuse_reordered(made)
        figures = check.verify(session, reference, sets, made, prepared.precision_class, only=only)
        if figures:  # of lead-ins there are none where memory is short
            check.decide(figures, reference, prepared.precision_class)

    workers = session.child.pid, *attempt.context.wait_for_others()
    own_pids = {*workers, *processes.descendants(*workers)}
    # Asked of baselines alone: a candidate is not told when its timing begins.
    before = session.compilations() if prepared.is_baseline else 0
    attempt.timing = timing = Rounds(
        session, attempt.backend, reference, attempt.settings, verify, own_pids, is_control=prepared.is_control,
        is_probed=attempt.is_candidate, pooled_baseline=control.pooled_baseline if control else None,
        control_apart=control.apart if control else 0.0, ends_s=attempt.judgement.ends_s,
    ).run()
    if attempt.is_candidate and attempt.judgement.state_moved:  # in its first calls; who counts them may leave that to those
        attempt.judgement.state_moved = moves_alike(session, reference, attempt.settings.launch_timeout_s, is_late=True)
    if prepared.is_baseline:
        timing.notes += compilation_notes(prepared.name, before, session.compilations())
    slows_unseen = attempt.limits.is_host and attempt.is_candidate  # by a quarter, which is held against nobody there
    if control is not None and (timing.is_brief or slows_unseen or is_references(timing, attempt.limits, control)):
        span_usual_baseline(timing, control.baseline_us, attempt.settings.confidence)


def audit_times(attempt: Attempt) -> None:
    """Hold the times against the floor, the judge's own clock, the probes and each other; what stands is the row's."""
    timing, limits, judgement, control = attempt.timing, attempt.limits, attempt.judgement, attempt.control
    if attempt.is_timed:
        if attempt.first:
            judgement.clocks = reconcile(timing, control, None, limits)
        with told_why_it_scatters(timing, limits, lambda: _count_kernels(attempt)):
            _check_clock(attempt)
            # Neither gains anything by it, and a baseline's interval is there to be read.
            if attempt.is_candidate and not timing.is_brief:
                check_evenness(timing, limits)
                if not is_references(timing, limits, control):  # an interval is then as wide as it says
                    check_spread(timing, limits, attempt.settings.half_width)
                count_unvouched(timing, control.unvouched_us(timing, limits) if control else 0.0, attempt.settings.confidence)
    judgement.timings.append(timing)
    attempt.warn(memory_notes(attempt.reference.memory, timing.lacked_launches) if attempt.first else [])
    attempt.warn(timing.notes)


def attribute(attempt: Attempt) -> None:
    """Say whose kernels ran, in each worker, since only the first may be honest. Of a baseline they are counted."""
    judgement = attempt.judgement
    if attempt.is_timed and attempt.is_candidate:
        attempt.tell("tracing kernels")
        traced = trace(attempt.session, attempt.reference, attempt.prepared, attempt.timing)
        judgement.provenance = least_of_processes(judgement.provenance, traced)
        attempt.warn(judgement.provenance.notes)
        judgement.launched = judgement.provenance.launched
    elif attempt.is_timed and attempt.first and attempt.limits.lists_kernels:
        judgement.launched = _count_kernels(attempt)


def compare_clocks(attempt: Attempt) -> None:
    """Keep what the three clocks say of a call, and note it where they are far apart."""
    judgement, traced = attempt.judgement, attempt.judgement.provenance
    if attempt.first and attempt.is_timed:
        judgement.clocks = reconcile(attempt.timing, attempt.control, traced.busy_us if traced else None, attempt.limits)
        apart = judgement.clocks.disagreement(attempt.limits)
        judgement.warnings += [apart] if apart else []


def measure_extras(attempt: Attempt) -> None:
    """Measure what was asked for besides; no rank hangs on it."""
    wanted, judgement = attempt.context.wanted_extras, attempt.judgement
    if attempt.first and wanted and attempt.is_timed:
        attempt.tell("measuring what was asked for besides")
        judgement.extras = extras.measure(
            attempt.session, attempt.reference, attempt.prepared.precision_class, attempt.timing.time_us, wanted
        )
        judgement.warnings += judgement.extras.notes


def audit_baseline(attempt: Attempt) -> None:
    """Once the worker is gone: hold what eager took beside it against what it takes without."""
    if attempt.is_timed and not attempt.timing.is_brief:
        clock_audit.check_baseline(
            attempt.timing, attempt.limits, attempt.control, lambda gated: _eager_alone_us(attempt.context, gated)
        )


def _check_clock(attempt: Attempt) -> None:
    """Raise Failed where the times cannot be what it took.

    A doubt about the clock of a candidate whose queue could not be gated, which an honest host may be the cause of, is
    certain where its kernels keep the device busy for longer than its calls are said to take. A doubt changes nothing of
    a call that takes a hundred times as long as the baseline's; what is certain does.
    """
    timing, limits = attempt.timing, attempt.limits
    unexplained_us = attempt.control.unexplained_us(timing) if attempt.control is not None else None
    if unexplained_us is not None and unexplained_us > limits.wall_us:
        timing.other_streams = other_streams(attempt.session, timing)
    try:
        clock_audit.check_times(timing, limits, attempt.context.floor_us, attempt.control)
    except Failed as doubt:
        is_doubt = doubt.verdict.reason_code is ReasonCode.NOISY
        if is_doubt and doubt.beside_control and is_ungated(timing, limits) and attempt.is_candidate:
            trace(attempt.session, attempt.reference, attempt.prepared, timing)
        if not (is_doubt and timing.is_brief):
            raise


def _eager_alone_us(context: JudgingContext, gated: bool) -> float:
    """Eager's time on the timed sizes with no worker at work beside it, in µs; `gated` where queues are."""
    context.wait_for_others()
    reference, backend = context.references[0], context.backend
    sets = [reference.draw() for _ in range(_ALONE_LAUNCHES)]
    backend.synchronize()
    made = [backend.local_launches(reference.model, sets, gate=gated and backend.limits.gates_queues) for _ in range(_ALONE_TIMES)]
    return statistics.median(local.times_us[-1] for local in made)


def _count_kernels(attempt: Attempt) -> int:
    """How many kernels, copies and fills a call is that the worker makes now; 0 where that cannot be seen."""
    session, timing = attempt.session, attempt.timing
    try:
        made = timing.recorded[-1] if timing.recorded else recorded_launches(
            session, attempt.reference, attempt.prepared, held=False, lead_in=False
        )
        return len(timed_windows(session, made)[-1].spans)
    except (Failed, Unproven, RuntimeError):  # no room on the device is a RuntimeError
        return 0
