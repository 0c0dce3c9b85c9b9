"""One attempt of an entry, which is a process of its own from load to stop: checked, timed and traced.

The order is the cheap and damning first: form and values over all families and sizes, then the clock, then whose
kernels ran. Nothing that was not verified is timed, and nothing is reported that was not measured.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from harness.attribution.kernel_ownership import Provenance, claiming_least
from harness.attribution.recording import Unproven
from harness.audit.clock_audit import check_baseline, check_times
from harness.device.bench import Bench
from harness.judge import check, extras
from harness.judge.judgement import Judgement, Prepared
from harness.judge.kernel_trace import recorded_launches, timed_windows, trace
from harness.judge.loader import Loader, blaming_the_state
from harness.judge.moved_state import moves_alike
from harness.launch.conversation import Launches
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.device_limits import Limits
from harness.model.settings import Settings
from harness.model.sizes_text import sizes_text
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.reference.inputs.sets import InputSet
from harness.reference.memory_plan import MemoryStep, sentence_of
from harness.reference.reference_model import Reference
from harness.sandbox import processes
from harness.sandbox.spawn import Child
from harness.timing.control import Control, reconcile
from harness.timing.doubts import is_references, is_ungated, told_why_it_scatters
from harness.timing.estimate import count_unseen, span_usual_baseline
from harness.timing.rounds import Rounds
from harness.timing.timings import Timing
from harness.timing.variance import check_evenness, check_spread

# Two launches, the first a lead-in, so often: a single time would by chance be fast or slow on a busy machine.
_ALONE_LAUNCHES, _ALONE_TIMES = 2, 3
_CONTROL_BUDGET_S = 1.0
_REORDERED = (
    "an output lies in memory in another order of dimensions than the reference's (channels_last, say); its copy to that "
    "order is in the timed window"
)
# Of a device's memory, for inputs and truths that the next entry is checked with.
_READY_SHARE = 1 / 16


class Attempt:
    """Tries entries of one problem on one device, each time in a fresh process; what it is given is an `EntryJudge`'s."""

    def __init__(
        self, bench: Bench, references: Sequence[Reference], settings: Settings, floor_us: float | None,
        model_seed: int, wanted_extras: Collection[str], wait_for_others: Callable[[], Collection[int]],
        open_next: Callable[[], None],
    ) -> None:
        self._bench, self._references, self._settings = bench, references, settings
        self._floor_us, self._model_seed = floor_us, model_seed
        self._wanted_extras, self._wait_for_others = wanted_extras, wait_for_others
        self._open_next = open_next

    def __call__(
        self, prepared: Prepared, start: Callable[[], Child], judgement: Judgement, control: Control | None,
        tell: Callable[[str], None], *, first: bool,
    ) -> None:
        """Add to `judgement` what the process that `start` starts shows of `prepared`; raises Failed.

        Only the `first` gives error figures, those of sizes that are not timed among them, the three clocks of a call,
        and what was asked for besides.
        """
        settings = self._settings
        session = Session(start(), self._bench, settings.load_timeout_s, settings.launch_timeout_s)
        try:
            tell("loading")
            session.ends_s = judgement.ends_s
            reload = Loader(session, prepared, self._model_seed)
            self._check(session, prepared, judgement, reload, tell, first=first)
            tell("timing")
            session.ends_s = math.inf  # what is right is to have its time
            timing = self._time(session, prepared, judgement, control)
            is_hosts = is_references(timing, self._bench.limits, control)
            # On a CPU eager may be slowed down by more than anybody would be faster for, before that is held against a candidate.
            slows_unseen = self._bench.limits.is_host and not prepared.is_baseline
            if control is not None and (timing.is_brief or is_hosts or slows_unseen):
                times = span_usual_baseline(timing, control.baseline_us, settings.confidence)
                timing.times_slowed = times if slows_unseen else 1.0
            if timing.candidate_us:
                if first:
                    judgement.clocks = reconcile(timing, control, None, self._bench.limits)
                with told_why_it_scatters(timing, self._bench.limits, lambda: self._count_kernels(session, timing, prepared)):
                    with _undoubted_where(timing.is_brief), self._settled_by_its_kernels(session, prepared, timing):
                        check_times(timing, self._bench.limits, self._floor_us, control)
                    # Neither gains anything by it, and a baseline's interval is there to be read.
                    if not (prepared.is_baseline or timing.is_brief):
                        if control is not None:
                            count_unseen(timing, control.unseen_us(timing, self._bench.limits), settings.confidence)
                        check_evenness(timing, self._bench.limits)
                        if not is_hosts:  # an interval is then as wide as it says
                            check_spread(timing, self._bench.limits, settings.half_width)
            judgement.timings.append(timing)
            if first:
                judgement.warnings += memory_notes(self._references[0], timing)
            judgement.warnings += [note for note in timing.notes if note not in judgement.warnings]
            if timing.candidate_us and not prepared.is_baseline:
                # In each worker: one that knows that it is not the first could use a library where nobody looks.
                tell("tracing kernels")
                judgement.provenance = self._trace(session, prepared, judgement)
                judgement.launched = judgement.provenance.launched
            elif timing.candidate_us and first and self._bench.limits.lists_kernels:
                judgement.launched = self._count_kernels(session, timing, prepared)
            if first and timing.candidate_us:
                _reconcile(timing, judgement, control, self._bench.limits)
            if first and self._wanted_extras and timing.candidate_us:
                tell("measuring what was asked for besides")
                judgement.extras = extras.measure(
                    session, self._references[0], self._bench, prepared.precision_class, timing.time_us,
                    self._wanted_extras,
                )
                judgement.warnings += judgement.extras.notes
        finally:
            ending = sys.exc_info()[1]
            interrupted = ending is not None and not isinstance(ending, Exception)
            session.stop(None if interrupted else self._get_on)
        if timing.candidate_us and not timing.is_brief:
            check_baseline(timing, self._bench.limits, control, self._eager_alone_us)

    def check(
        self, prepared: Prepared, start: Callable[[], Child], judgement: Judgement, tell: Callable[[str], None]
    ) -> Verdict:
        """Return the verdict on the outputs of `prepared` alone, in one process and without a timed call. Raises Failed."""
        session = Session(start(), self._bench, self._settings.load_timeout_s, self._settings.launch_timeout_s)
        try:
            tell("loading")
            session.ends_s = judgement.ends_s
            self._check(session, prepared, judgement, Loader(session, prepared, self._model_seed), tell, first=True)
        finally:
            session.stop()
        sizes = sizes_text(self._references[0].sizes)
        return Verdict(
            Status.CHECKED, ReasonCode.NOT_TIMED, f"right{' at ' if sizes else ''}{sizes}; it was asked for without a time"
        )

    @contextlib.contextmanager
    def _settled_by_its_kernels(self, session: Session, prepared: Prepared, timing: Timing) -> Iterator[None]:
        """A doubt about the clock of a candidate whose queue could not be gated, which an honest host may be the cause
        of, is certain where its kernels keep the device busy for longer than its calls are said to take. Raises Failed.
        """
        try:
            yield
        except Failed as doubt:
            is_doubt = doubt.beside_control and doubt.verdict.reason_code is ReasonCode.NOISY
            if is_doubt and is_ungated(timing, self._bench.limits) and not prepared.is_baseline:
                trace(session, self._bench.limits, self._references[0], prepared, timing)
            raise

    def _get_on(self) -> None:
        """What need not wait until a killed process has gone."""
        with contextlib.suppress(Exception):  # whose turn it is will say what is wrong
            self._open_next()
        if not self._make_ready():
            with contextlib.suppress(Exception):
                self._bench.release_memory()

    def _make_ready(self) -> bool:
        """Have inputs and truths ready for the checks of whoever comes next, where a device could not do more; whether
        nothing went wrong.
        """
        memory_bytes = self._bench.identity.memory_bytes
        is_short = any(reference.memory.step is not MemoryStep.FULL for reference in self._references)
        if self._bench.limits.is_host or not memory_bytes or is_short:
            return not is_short
        room_bytes = _READY_SHARE * memory_bytes
        try:
            for position, reference in enumerate(self._references):
                families = check.families_checked(reference, self._settings.check_launches, timed=position == 0)
                room_bytes = reference.make_ready(families, room_bytes)
        except Exception:  # the next one will say so, if it has no room either
            for reference in self._references:
                reference.forget_ready()
            return False
        return True

    def control_again(self, prepared: Prepared, start: Callable[[], Child]) -> Timing | None:
        """Eager in a worker once more, timed briefly, its outputs unseen; None where that failed."""
        settings, reference = self._settings, self._references[0]
        session = Session(start(), self._bench, settings.load_timeout_s, settings.launch_timeout_s)
        try:
            Loader(session, prepared, self._model_seed)(reference)
            brief = replace(settings, budget_s=min(settings.budget_s, _CONTROL_BUDGET_S))
            timing = Rounds(
                session, self._bench, reference, brief, lambda sets, made, only=None: None, set(), is_control=True
            ).run()
            return timing if timing.candidate_us else None
        except (Failed, RuntimeError):  # no room on the device is a RuntimeError
            self._bench.release_memory()
            return None
        finally:
            session.stop()

    def _check(
        self, session: Session, prepared: Prepared, judgement: Judgement, reload: Loader,
        tell: Callable[[str], None], *, first: bool,
    ) -> None:
        references = self._references if first and not prepared.is_baseline else self._references[:1]
        first_timeout_s = self._settings.launch_timeout_s + self._settings.load_timeout_s
        with blaming_the_state(reload, judgement if first else None):
            reload(references[0])
            tell("checking")
            timeout_s = self._settings.build_timeout_s if prepared.is_baseline else first_timeout_s
            found = judgement.figures if first else []
            refused = check.check_all(
                session, references, self._settings.check_launches, prepared.precision_class, reload, timeout_s, found
            )
            check.call_once(session, references[0], prepared.precision_class, reload, timeout_s)
            if session.reordered:
                judgement.warnings += [note for note in (_REORDERED,) if note not in judgement.warnings]
            if first and not prepared.is_baseline:
                judgement.state_moved = moves_alike(session, references[0], timeout_s)
            if refused:
                judgement.warnings.append(f"it refuses sizes that the problem names: {'; '.join(refused)}")

    def _time(
        self, session: Session, prepared: Prepared, judgement: Judgement, control: Control | None
    ) -> Timing:
        reference = self._references[0]

        def verify(sets: Sequence[InputSet], made: Launches, only: Collection[int] | None = None) -> None:
            check.refuse_reordered(made)
            figures = check.verify(session, reference, sets, made, prepared.precision_class, only=only)
            if figures:  # of lead-ins there are none where memory is short
                check.decide(figures, reference, prepared.precision_class)

        workers = session.child.pid, *self._wait_for_others()
        own_pids = {*workers, *processes.descendants(*workers)}
        # Asked of baselines alone: a candidate is not told when its timing begins.
        before = session.compilations() if prepared.is_baseline else 0
        timing = Rounds(
            session, self._bench, reference, self._settings, verify, own_pids, is_control=prepared.is_control,
            pooled_baseline=control.pooled_baseline if control else None, control_apart=control.apart if control else 0.0,
            ends_s=judgement.ends_s,
        ).run()
        if prepared.is_baseline:
            timing.notes += compilation_notes(prepared.name, before, session.compilations())
        return timing

    def _eager_alone_us(self, held: bool) -> float:
        """Eager's time on the timed sizes with no worker at work beside it, in µs; its launches `held` where queues are."""
        self._wait_for_others()
        reference = self._references[0]
        sets = [reference.draw() for _ in range(_ALONE_LAUNCHES)]
        self._bench.synchronize()
        gate = held and self._bench.limits.gates_queues
        made = [self._bench.local_launches(reference.model, sets, gate=gate) for _ in range(_ALONE_TIMES)]
        return statistics.median(local.times_us[-1] for local in made)

    def _count_kernels(self, session: Session, timing: Timing, prepared: Prepared) -> int:
        """How many kernels, copies and fills a call is that the worker makes now; 0 where that cannot be seen."""
        try:
            made = timing.recorded[-1] if timing.recorded else recorded_launches(
                session, self._references[0], prepared, held=False, lead_in=False
            )
            return len(timed_windows(session, made)[-1].spans)
        except (Failed, Unproven):
            return 0

    def _trace(self, session: Session, prepared: Prepared, judgement: Judgement) -> Provenance:
        traced = trace(session, self._bench.limits, self._references[0], prepared, judgement.timings[-1])
        found = claiming_least(judgement.provenance, traced)
        judgement.warnings += [note for note in found.notes if note not in judgement.warnings]
        return found


@contextlib.contextmanager
def _undoubted_where(is_brief: bool) -> Iterator[None]:
    """A doubt about a clock changes nothing of a call that takes a hundred times as long as the baseline's; what is certain
    does. Raises Failed.
    """
    try:
        yield
    except Failed as failure:
        if not is_brief or failure.verdict.reason_code is not ReasonCode.NOISY:
            raise


def _reconcile(timing: Timing, judgement: Judgement, control: Control | None, limits: Limits) -> None:
    """Keep what the three clocks say of a call, and note it where they are far apart."""
    traced = judgement.provenance
    judgement.clocks = reconcile(timing, control, traced.busy_us if traced else None, limits)
    apart = judgement.clocks.disagreement(limits)
    judgement.warnings += [apart] if apart else []


def memory_notes(reference: Reference, timing: Timing) -> list[str]:
    """What was given up to have room, where that changed how it was judged."""
    plan = reference.memory
    is_fewer = plan.step is MemoryStep.FEWER and not timing.lacked_launches
    return [] if plan.step is MemoryStep.FULL or is_fewer else [f"memory was short: {sentence_of(plan)}"]


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
