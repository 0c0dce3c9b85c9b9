"""Whose kernels ran, and whether the launches that show it were launches like the timed ones.

On a GPU the worker's recorder wrote down what ran in probes among the rounds, which look like any other segment. On a CPU
one launch is watched by PyTorch's profiler, and the listing is the worker's word; the system's looks at what its cores ran
in all launches are not. What can be held against either: the outputs are compared with the truth like any other, and the
time is compared with the time that was measured.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from harness.attribution import code_regions
from harness.attribution.kernel_names import is_copy, is_copy_with_host
from harness.attribution.kernel_ownership import (
    Owners, Provenance, Span, busy_us, kind_on_cpu, kind_on_gpu, least_of_calls, middle_of_calls, owners_of,
)
from harness.attribution.linked_symbols import foreign_functions
from harness.attribution.loaded_code import not_of_the_build
from harness.attribution.permitted_symbols import is_permitted
from harness.attribution.recording import Unproven, Window, windows
from harness.attribution.symbols import gather
from harness.judge import check
from harness.judge.launch_figures import judge_launch
from harness.launch import failures
from harness.launch.conversation import Launches
from harness.launch.failures import Failed
from harness.launch.session import Session
from harness.model.device_limits import DeviceLimits
from harness.model.files.carried_code import source_carries_code
from harness.model.files.imported_sources import imported_sources
from harness.model.verdict import ReasonCode, Status
from harness.protocol.frames import BadFrame
from harness.protocol.layout import TensorSpec
from harness.reference.reference_model import Reference
from harness.timing.doubts import by_chance_us
from harness.timing.timings import Timing

if TYPE_CHECKING:
    from harness.judge.judgement import Prepared

UNKNOWN = Provenance("unknown", None)
# What CUPTI adds to each kernel of a recorded call (0.6 to 1.9 µs were seen on an H100), or to each launch where the host's
# time is in the window.
_EACH_US, _EACH_UNGATED_US = 2.5, 8.0
# By the judge's own clock a recorded call may take so much longer than the recording says, or a share: it adds as much to
# each of the harness's own steps as to a kernel. Of 70 recorded segments on an H200 none took 4 µs more.
_BY_JUDGE_US, _BY_JUDGE_SHARE = 15.0, 0.05
# Within a window that was queued ahead the GPU may stand idle for so long around its kernels, and so long between two.
_IDLE_US, _IDLE_EACH_US = 10.0, 3.0
_NOBODYS_SHARE = 0.05
_TRIES = 3
_FILLED = 5  # the first time the memory is new, as in a call
_CARRIED = "may be machine code that its source carries as bytes, whatever its text says"
_ARENAS_OWN = "fallocate"  # which the worker itself looks up when memory is given back


def trace(session: Session, reference: Reference, prepared: Prepared, timing: Timing) -> Provenance:
    """Say whose kernels the calls at the sizes of `reference` were; what cannot be seen is unknown.

    Raises Failed only where a GPU's kernels contradict the clock: those of all recorded launches, with right outputs, kept
    it busy for longer than the calls are said to take.
    """
    if not session.backend.limits.lists_kernels:
        traced = _trace_on_cpu(session, reference, prepared, timing)
        seen, fault = session.code_watch.seen(reference, prepared.extensions)
        traced = code_regions.less_own(traced, seen, fault, timing.time_us, _fill_us(reference.output_specs))
        if prepared.extensions and traced.kind in ("custom", "mixed") and _carries_code(prepared):
            return _unknown(traced, f"what its extension runs {_CARRIED}")
    else:
        traced = _trace_on_gpu(session, reference, prepared, timing)
        if session.helped and traced.kind != "unknown":
            return _unknown(traced, "another process that it began uses the GPU: what that does is not known")
    if prepared.unproven and traced.kind in ("custom", "mixed"):
        return _unknown(traced, f"whose its extension is is not known: {prepared.unproven}")
    return traced


def _carries_code(prepared: Prepared) -> bool:
    return any(source_carries_code(text) for _, text in imported_sources(Path(prepared.path)))


def _unknown(traced: Provenance, note: str) -> Provenance:
    return replace(traced, kind="unknown", own_share=None, notes=(*traced.notes, note))


@dataclass(frozen=True)
class _Seen:
    """What one recorded segment shows, and a sentence where it was none like the timed ones."""

    found: Provenance
    unlike: str | None
    is_too_long: bool


def _trace_on_gpu(session: Session, reference: Reference, prepared: Prepared, timing: Timing) -> Provenance:
    """Of all recorded segments that which claims least; one at least must be like the timed ones, or more are made."""
    held, source = timing.launch_hidden is True, Path(prepared.path)
    tries = 1 if timing.is_brief else _TRIES  # of what takes seconds, one is enough

    @functools.cache  # nearly always the same names
    def owners(names: frozenset[str]) -> Owners:
        owners = owners_of(names, gather(prepared.extensions, prepared.triton_cache, source, sorted(names)))
        if carries():
            return owners.without(dict.fromkeys(owners.own, _CARRIED))
        built = [name for name in owners.own if owners.of[name][1] == "extension"]
        backend = session.backend
        return owners.without(not_of_the_build(built, backend.loaded_code(), prepared.extensions, backend.identity.sm))

    @functools.cache
    def carries() -> bool:
        return _carries_code(prepared)

    waiting = [made for made in timing.recorded if (made.hidden is True) == held]
    seen: list[_Seen] = []
    try:
        while waiting or (len(seen) < tries and all(each.unlike for each in seen)):
            made = waiting.pop(0) if waiting else recorded_launches(
                session, reference, prepared, held=held, lead_in=not timing.is_brief
            )
            seen.append(_read(session, made, timing, reference.output_specs, owners))
    except Failed as failure:
        return _untraced(failure)
    except Unproven as unproven:
        return replace(UNKNOWN, notes=(f"its kernels are not known: {unproven}",))
    least = least_of_calls([each.found for each in seen])
    if any(each.unlike is None for each in seen):
        return least
    if all(each.is_too_long for each in seen):
        raise failures.failed(
            Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
            f"its clock says {timing.time_us:.1f} µs a call, but its kernels kept the GPU busy for {least.busy_us:.1f} µs, and "
            f"so in each of {len(seen)} recorded segments with right outputs",
        )
    return _unknown(least, seen[-1].unlike)


def _untraced(failure: Failed) -> Provenance:
    """What is said where tracing failed: everything that counts was right before."""
    return replace(UNKNOWN, notes=(f"its kernels could not be traced; when they were: {failure.verdict.reason}",))


def recorded_launches(
    session: Session, reference: Reference, prepared: Prepared, *, held: bool, lead_in: bool = True
) -> Launches:
    """Launches, mostly behind a lead-in, whose kernels were recorded and whose outputs were right. Raises Failed."""
    sets = [reference.draw() for _ in range(1 + lead_in)]
    session.backend.synchronize()
    made = session.launch(sets, gate=held and lead_in, record=True)  # one alone is waited for within its queue
    last = len(sets) - 1
    figures = judge_launch(session, reference, sets[last], last, prepared.precision_class)
    check.decide([figures], reference, prepared.precision_class)
    return made


def timed_windows(session: Session, made: Launches) -> list[Window]:
    """The windows of recorded launches, without that of the lead-in. Raises Unproven."""
    every = windows(made.recording, session.backend.markers, len(made.launches))
    return every[1:] or every


def other_streams(session: Session, timing: Timing) -> int:
    """How many streams beside the current one had a part in each timed call that was recorded among the rounds; 0 where that is
    not proven, where something of it ran before its window, and where its queue was not gated: none waits there.
    """
    try:
        every = [window for made in timing.recorded for window in timed_windows(session, made)]
    except Unproven:
        return 0
    if timing.launch_hidden is not True or any(window.early for window in every):
        return 0
    return min((window.other_streams for window in every), default=0)


def _read(
    session: Session, made: Launches, timing: Timing, output_specs: Sequence[TensorSpec],
    owners: Callable[[frozenset[str]], Owners],
) -> _Seen:
    """What recorded launches show, which return outputs of these specs each. Raises Unproven."""
    every, held, limits = timed_windows(session, made), made.hidden is True, session.backend.limits
    outputs = len(output_specs)
    known = owners(frozenset(span.name for window in every for span in (*window.spans, *window.late)))
    kinds = [_kind_of(window, known, outputs if session.reordered else 0, held=held) for window in every]
    provenance = replace(
        least_of_calls(kinds), busy_us=statistics.median(each.busy_us for each in kinds),
        launched=round(statistics.median(each.launched for each in kinds)),
    )
    fault = _step_left_out(every, sum(spec.size_bytes for spec in output_specs))
    if fault is not None and provenance.kind != "library":
        provenance = _unknown(provenance, f"its kernels are not known: {fault}")
    # Kernels that run beside others add nothing; where the host launches them within the window, all do.
    slowed = round(statistics.median(len(window.stretches_us) for window in every)) if held else provenance.launched
    unlike = unlike_timed(statistics.median(window.open_us for window in every), timing, limits, slowed)
    unlike = unlike or _busy_for_longer(every, timing, limits)
    unlike = unlike or (_unlike_judges(made, every, timing) if held else None)
    return _Seen(provenance, unlike, provenance.busy_us > timing.time_us)


def _kind_of(window: Window, owners: Owners, copies: int, *, held: bool) -> Provenance:
    """The kind of one launch. Time in which the GPU waits for the host, beyond what lies between kernels, is nobody's: where
    launches are not queued ahead it may be as long as the GPU works. What is copied to the host, or from it, is no such work.
    """
    copied = _copies_to_order(window, copies)
    spans = [span for span in window.spans if span not in copied]
    busy = busy_us(window.spans)
    provenance = replace(kind_on_gpu([*spans, *window.late], owners), busy_us=busy, launched=len(window.spans))
    between_us = _IDLE_EACH_US * len(window.stretches_us) if held else _EACH_UNGATED_US * len(window.spans)
    works_us = busy if held else busy_us([span for span in window.spans if not is_copy_with_host(span.name)])
    idle_us = window.open_us - works_us - _IDLE_US - between_us
    if idle_us <= (_NOBODYS_SHARE * window.open_us if held else works_us):
        return provenance
    copied = " or copied to or from the host" if works_us < busy else ""
    return _unknown(provenance, (
        f"the GPU stood idle{copied} for {window.open_us - works_us:.1f} of {window.open_us:.1f} µs of a call: who works "
        "meanwhile is not known"
    ))


def _step_left_out(every: Sequence[Window], output_bytes: int) -> str | None:
    """A clause where more than the harness's steps runs before a window, or not all of them after it."""
    for window in every:
        if window.early:
            names = ", ".join(sorted({span.name for span in window.early})[:3])
            return f"{names} ran between a launch's turn and its window, where nothing of it has business"
        took_copy = window.copied_bytes >= output_bytes or window.has_copy_kernel
        if not took_copy or window.filled_bytes < output_bytes:
            return (
                f"of outputs of {output_bytes:,} bytes {window.copied_bytes:,} were copied and {window.filled_bytes:,} "
                "written over behind a window: a step of the harness's was left out"
            )
    return None


def _unlike_judges(made: Launches, every: Sequence[Window], timing: Timing) -> str | None:
    """A sentence when recorded launches took longer by the judge's own clock than the recording and the harness's steps say."""
    steps_us, last = timing.typical_overhead_us, made.launches[-len(every):]
    longer_us = [each.window_us - window.open_us for each, window in zip(last, every) if each.window_us is not None]
    if steps_us is None or not longer_us:
        return None
    open_us, more_us = statistics.median(window.open_us for window in every), statistics.median(longer_us) - steps_us
    if more_us <= max(_BY_JUDGE_US, _BY_JUDGE_SHARE * open_us):
        return None
    return (
        f"its recorded calls took {open_us:.1f} µs by the recording's clock, and {more_us:.1f} µs more than that by the "
        "judge's: whose kernels were timed is not known"
    )


def _busy_for_longer(every: Sequence[Window], timing: Timing, limits: DeviceLimits) -> str | None:
    """A sentence when recorded kernels ran for longer than a timed call took, whatever recording them adds: that much to
    each stretch of work, and no more than half of it. Empty kernels on other streams thus excuse no long one.
    """
    ran_us = statistics.median(sum(max(us - _EACH_US, us / 2) for us in window.stretches_us) for window in every)
    if ran_us <= limits.traced_most * timing.time_us + limits.traced_slack_us:
        return None
    return (
        f"when it was traced its kernels ran for {ran_us:.1f} µs at least, where a timed call took {timing.time_us:.1f} µs: "
        "that is not the same work, so whose kernels were timed is not known"
    )


def unlike_timed(traced_us: float, timing: Timing, limits: DeviceLimits, kernels: int = 0) -> str | None:
    """A sentence when a launch of so many `kernels` that took `traced_us` cannot be what `timing` timed, else None."""
    timed_us, slack_us, longer_us = timing.time_us, limits.traced_slack_us, 0.0
    if limits.lists_kernels:
        held = timing.launch_hidden is True
        slack_us += 0.0 if held else by_chance_us(timing)
        longer_us = (_EACH_US if held else _EACH_UNGATED_US) * kernels
    least_us = limits.traced_least * timed_us - slack_us
    most_us = limits.traced_most * timed_us + slack_us + longer_us
    if math.isfinite(traced_us) and least_us <= traced_us <= most_us:
        return None
    return (
        f"when it was traced it took {traced_us:.1f} µs, where a timed call took {timed_us:.1f} µs: that is not the same "
        "work, so whose kernels were timed is not known"
    )


def _copies_to_order(window: Window, outputs: int) -> list[Span]:
    """The harness's copies of outputs in another order, at the end of a launch: nobody's kernels, and no arithmetic."""
    last = sorted(window.spans, key=lambda span: span.start_us, reverse=True)[:outputs]
    copies = list(itertools.takewhile(lambda span: is_copy(span.name), last))
    return copies if sum(span.time_us for span in copies) <= window.most_copy_us else []


def _trace_on_cpu(session: Session, reference: Reference, prepared: Prepared, timing: Timing) -> Provenance:
    """Watch a launch. One that comes out as mixed or unknown is watched three times, of which the middle one counts: a pause
    of a busy core falls on the candidate's own time, on a library's or between the two, and is soon a twentieth of a call.
    """
    provenance, unlike = UNKNOWN, None
    alike: list[Provenance] = []
    for _ in range(1 if timing.is_brief else _TRIES):  # of what takes seconds, one is enough
        try:
            beside_us = session.core_time_beside_us()
            listing = _listing_of(_profiled(session, reference, prepared))
        except (Failed, BadFrame) as error:
            if alike:
                break
            if isinstance(error, BadFrame):
                return replace(UNKNOWN, notes=("the profiler's listing could not be read",))
            return _untraced(error)
        listing["others_us"] += session.core_time_beside_us() - beside_us
        provenance = _kind_on_cpu(listing, prepared)
        unlike = unlike_timed(provenance.busy_us, timing, session.backend.limits)
        if unlike is None:
            alike.append(provenance)
            if alike[0].kind not in ("mixed", "unknown"):
                return provenance
    if alike:
        return middle_of_calls(alike)
    return _unknown(provenance, unlike)


def _fill_us(specs: Sequence[TensorSpec]) -> float:
    """How long PyTorch takes on a CPU to fill outputs of these `specs`, in this process."""
    outputs, times_us = [torch.empty(spec.shape, dtype=spec.torch_dtype) for spec in specs], []
    for _ in range(_FILLED):
        began_ns = time.perf_counter_ns()
        for output in outputs:
            output.fill_(1)
        times_us.append((time.perf_counter_ns() - began_ns) / 1e3)
    return statistics.median(times_us)


def _profiled(session: Session, reference: Reference, prepared: Prepared) -> dict[str, Any]:
    """What the worker lists of one launch whose output was right. Raises Failed."""
    inputs = reference.draw()
    session.backend.synchronize()
    listing = session.profile(inputs)
    figures = judge_launch(session, reference, inputs, 0, prepared.precision_class)
    check.decide([figures], reference, prepared.precision_class)
    return listing


def _listing_of(report: dict[str, Any]) -> dict[str, Any]:
    """What a worker on a CPU reports of a watched launch, its times as floats. Raises BadFrame where that is none."""
    operators, addresses = report.get("operators"), report.get("addresses")
    if not isinstance(addresses, list) or not isinstance(operators, list):
        raise BadFrame("a listing without operators or addresses")
    if not all(isinstance(each, dict) for each in operators):
        raise BadFrame("a listing of operators that are none")
    named = [{"name": str(each.get("name")), "us": _time_us(each.get("us") or 0.0)} for each in operators]
    times = {key: _time_us(report.get(key)) for key in ("total_us", "own_us", "others_us", "idle_us")}
    is_said = {key: report.get(key) is not False for key in ("called_back", "others_began")}
    return {**times, **is_said, "operators": named, "addresses": addresses}


def _time_us(value: Any) -> float:
    """A number of a listing; whether it is a time its reader asks. Raises BadFrame for what is none."""
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise BadFrame("a listing with times that are none") from None


def _kind_on_cpu(listing: dict[str, Any], prepared: Prepared) -> Provenance:
    total_us = listing["total_us"]
    provenance = kind_on_cpu(
        listing["operators"], listing["own_us"], total_us, has_extension=bool(prepared.extensions),
        pytorchs=_pytorchs_operators(), called_back=listing["called_back"],
        foreign=[*foreign_functions(*prepared.extensions), *_foreign_addresses(listing["addresses"], prepared)],
        others_us=listing["others_us"], others_began=listing["others_began"], idle_us=listing["idle_us"],
    )
    return replace(provenance, busy_us=total_us)


def _foreign_addresses(asked_for: Sequence[Any], prepared: Prepared) -> list[str]:
    """The addresses that Python was asked for, but for what is permitted and the candidate's own extensions."""
    own = {_ARENAS_OWN, *(spelt(path) for path in prepared.extensions for spelt in (str, os.path.realpath))}
    names = [str(each) for each in asked_for]
    return [f"the address of {name[-80:]}" for name in names if name not in own and not is_permitted(name)]


@functools.cache
def _pytorchs_operators() -> frozenset[str]:
    """The namespaces in which PyTorch itself has operators."""
    return frozenset(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names())
