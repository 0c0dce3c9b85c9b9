"""Whose kernels ran: one launch under the profiler, and whether it was a launch like the timed ones.

The listing is the player's word. What can be held against it: the launch's output is compared with the truth like any
other, and the time of its kernels with the time that was measured.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from harness.device.limits import Limits
from harness.provenance.kinds import Provenance, Span, kind_on_cpu, kind_on_gpu, middle_claim
from harness.provenance.linked import foreign_functions
from harness.provenance.permitted import is_permitted
from harness.provenance.symbols import gather
from harness.referee import checking, failures
from harness.referee.comparing_slices import judge_launch
from harness.referee.failures import Failed
from harness.referee.reference import Reference
from harness.referee.session import Session
from harness.referee.timed import Timing
from harness.verdict import ReasonCode, Status

if TYPE_CHECKING:
    from harness.referee.judgement import Contestant

UNKNOWN = Provenance("unknown", None)
# How much longer than a timed launch a traced one may take (a clock that had gone to sleep, the profiler's own doing)
# and how much shorter (gaps between kernels, what the events around them cost), beyond a slack that can be all of a
# tiny kernel's time or one pause of a busy CPU. What was only disturbed is like the others at another try.
_MOST_TIMES, _LEAST_TIMES = 1.5, 0.4
# Where the device waits for the host within the timed window, that holds all of the device's time, but for what kernels take
# longer by chance, and for what the profiler adds to each of them: 0.6 to 1.9 µs were seen on an H100, of calls of 1,081 to
# 3,676 kernels that ran beside each other less under it.
_MOST_TIMES_UNHELD, _LONGER_EACH_US = 1.05, 2.5
_TRIES = 3
_ARENAS_OWN = "fallocate"  # which the player itself looks up when memory is given back
_COPY_KERNEL = "direct_copy_kernel"  # PyTorch's own, for tensors of one dtype and different strides


def trace(
    session: Session, limits: Limits, reference: Reference, contestant: Contestant, timing: Timing
) -> Provenance:
    """Profile a launch at the sizes of `reference`; what cannot be traced is unknown.

    On a CPU one that comes out as mixed or unknown is profiled three times, of which the middle one counts: a pause of
    a busy core falls on the candidate's own time, on a library's or between the two, and is soon a twentieth of a call.

    Raises Failed only where the profiler's clock contradicts the timed one: the kernels of each of three launches, all
    with right outputs, kept a GPU busy for longer than the calls are said to take.
    """
    found, unlike, too_long = UNKNOWN, None, 0
    alike: list[Provenance] = []
    for _ in range(1 if timing.is_brief else _TRIES):  # of what takes seconds, one is enough
        try:
            beside_us = session.core_time_beside_us() if not limits.lists_kernels else 0.0
            listing = _profiled(session, reference, contestant)
            if not limits.lists_kernels:
                listing["others_us"] += session.core_time_beside_us() - beside_us
            found, traced_us = _read(listing, limits, contestant, len(reference.output_specs))
        except Failed as failure:
            if alike:
                break
            # Everything that counts was right before the profiler came: what fails now is the tracing.
            note = f"its kernels could not be traced; under the profiler: {failure.verdict.reason}"
            return replace(UNKNOWN, notes=(note,))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            if alike:
                break
            return replace(UNKNOWN, notes=("the profiler's listing could not be read",))
        unlike = unlike_timed(traced_us, timing, limits, found.launched)
        if unlike is None:
            alike.append(found)
            if limits.lists_kernels or alike[0].kind not in ("mixed", "unknown"):
                return found
            continue
        too_long += traced_us > timing.time_us
    if alike:
        return middle_claim(alike)
    if limits.lists_kernels and too_long == _TRIES:
        raise failures.failed(
            Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
            f"its clock says {timing.time_us:.1f} µs a call, but its kernels kept the GPU busy for {traced_us:.1f} µs "
            f"under the profiler, and so in each of {_TRIES} launches with right outputs",
        )
    return replace(found, kind="unknown", own_share=None, notes=(*found.notes, unlike))


def _profiled(session: Session, reference: Reference, contestant: Contestant) -> dict[str, Any]:
    """What the player lists of one launch whose output was right. Raises Failed."""
    inputs = reference.draw()
    session.bench.synchronize()
    listing = session.profile(inputs)
    figures = judge_launch(session, reference, inputs, 0, contestant.precision_class)
    checking.decide([figures], reference, contestant.precision_class)
    return listing


def _read(
    listing: dict[str, Any], limits: Limits, contestant: Contestant, outputs: int
) -> tuple[Provenance, float]:
    """The kind, and for how many µs the launch, which returns so many `outputs`, kept the device busy. Raises what a
    listing that is none makes of it.
    """
    source = Path(contestant.path)
    if not limits.lists_kernels:
        total_us = float(listing["total_us"])
        found = kind_on_cpu(
            listing["operators"], float(listing["own_us"]), total_us, has_extension=bool(contestant.extensions),
            pytorchs=_pytorchs_operators(), called_back=listing["called_back"] is not False,
            foreign=[
                *(name for path in contestant.extensions for name in foreign_functions(path)),
                *_foreign_addresses(listing["addresses"], contestant),
            ],
            others_us=float(listing["others_us"]), others_began=listing["others_began"] is not False,
            idle_us=float(listing["idle_us"]),
        )
        return replace(found, busy_us=total_us), total_us
    names = [str(name) for name in listing["names"]]
    spans = [Span(names[index], float(start_us), float(time_us)) for index, start_us, time_us in listing["spans"]]
    copies = _copies_to_order(spans, outputs) if listing.get("reordered") is True else []
    own = [span for span in spans if span not in copies]
    found = kind_on_gpu(own, gather(contestant.extensions, contestant.triton_cache, source, names))
    busy_us = found.busy_us + sum(span.time_us for span in copies)
    return replace(found, launched=len(spans), busy_us=busy_us), busy_us


def _foreign_addresses(asked_for: Sequence[Any], contestant: Contestant) -> list[str]:
    """What Python was asked the address of, in words, but for what an extension may take from elsewhere by itself, and for
    the candidate's own extensions, which are opened so where they are no modules.
    """
    own = {*map(str, contestant.extensions), _ARENAS_OWN}
    names = [str(each) for each in asked_for]
    return [f"the address of {name[-80:]}" for name in names if name not in own and not is_permitted(name)]


def _copies_to_order(spans: Sequence[Span], outputs: int) -> list[Span]:
    """The copies at the end of a launch that the harness made of outputs in another order: nobody's kernels, and no
    arithmetic.
    """
    copies: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start_us, reverse=True)[:outputs]:
        if _COPY_KERNEL not in span.name:
            break
        copies.append(span)
    return copies


@functools.cache
def _pytorchs_operators() -> frozenset[str]:
    """The namespaces in which PyTorch itself has operators."""
    return frozenset(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names())


def unlike_timed(traced_us: float, timing: Timing, limits: Limits, kernels: int = 0) -> str | None:
    """A sentence when a launch of so many `kernels` that kept the device busy for `traced_us` cannot be what `timing` timed,
    else None.

    Where launches on a GPU could not be queued ahead, the host's time is in the timed window and is taken off it.
    """
    timed_us, slack_us = timing.time_us, limits.traced_slack_us
    host_us, most_us = 0.0, _MOST_TIMES * timed_us
    if limits.gates_queues and timing.launch_hidden is not True:
        host_us = statistics.median(timing.host_us or [0.0])
        most_us = min(most_us, _MOST_TIMES_UNHELD * timed_us + _LONGER_EACH_US * kernels)
    least_us = _LEAST_TIMES * (timed_us - host_us) - slack_us
    if math.isfinite(traced_us) and least_us <= traced_us <= most_us + slack_us:
        return None
    return (
        f"under the profiler it took {traced_us:.1f} µs, where a timed call took {timed_us:.1f} µs: that is not the "
        "same work, so whose kernels were timed is not known"
    )
