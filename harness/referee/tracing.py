"""Whose kernels ran: one launch under the profiler, and whether it was a launch like the timed ones.

The listing is the player's word. What can be held against it: the launch's output is compared with the truth like any
other, and the time of its kernels with the time that was measured.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.provenance.kinds import Provenance, kind_on_cpu, kind_on_gpu
from harness.provenance.source_names import source_names
from harness.provenance.symbols import gather
from harness.referee import checking
from harness.referee.comparing import judge_outputs
from harness.referee.failures import Failed
from harness.referee.reference import Reference
from harness.referee.session import Session
from harness.referee.timing import Timing

if TYPE_CHECKING:
    from harness.referee.judging import Contestant

UNKNOWN = Provenance("unknown", None)
# The traced kernels may take longer than a timed launch by a clock that had gone to sleep and by the profiler's own
# doing, and less by the gaps between them and what the events around them cost; the second alone can be all of a tiny
# kernel's time, hence the slack.
_MOST_TIMES, _LEAST_TIMES, _SLACK_US = 1.5, 0.4, 20.0


def trace(
    session: Session, device_kind: str, reference: Reference, contestant: Contestant, timing: Timing
) -> Provenance:
    """Profile one launch at the sizes of `reference`; never raises Failed, what cannot be traced is unknown."""
    inputs = reference.draw()
    session.bench.synchronize()
    try:
        listing = session.profile(inputs)
    except Failed as failure:
        # Everything that counts was right before the profiler came: what fails now is the tracing.
        return replace(UNKNOWN, notes=(f"its kernels could not be traced: {failure.verdict.reason}",))
    try:
        truth = reference.truth(inputs, with_eager=False)
        figures = judge_outputs(reference, inputs, truth, session.outputs(reference, 0), contestant.precision_class)
        checking.decide([figures], reference, contestant.precision_class)
    except Failed as failure:
        note = f"under the profiler its output was not what it is otherwise ({failure.verdict.reason})"
        return replace(UNKNOWN, notes=(f"{note}: whose kernels were timed is not known",))
    try:
        if device_kind == "cpu":
            return _on_cpu(listing, contestant)
        return _on_gpu(listing, contestant, timing)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return replace(UNKNOWN, notes=("the profiler's listing could not be read",))


def _on_cpu(listing: dict[str, Any], contestant: Contestant) -> Provenance:
    return kind_on_cpu(
        listing["operators"], float(listing["own_us"]), float(listing["total_us"]),
        has_extension=bool(contestant.extensions), own_operators=source_names(Path(contestant.path)).operators,
    )


def _on_gpu(listing: dict[str, Any], contestant: Contestant, timing: Timing) -> Provenance:
    names = [str(kernel.get("name")) for kernel in listing["kernels"]]
    evidence = gather(contestant.extensions, contestant.triton_cache, Path(contestant.path), names)
    found = kind_on_gpu(listing["kernels"], evidence)
    busy_us = min(float(listing["busy_us"]), found.total_us)
    other = unlike_timed(busy_us, timing)
    return found if other is None else replace(found, kind="unknown", own_share=None, notes=(*found.notes, other))


def unlike_timed(traced_us: float, timing: Timing) -> str | None:
    """A sentence when kernels of `traced_us` in all cannot be what `timing` timed, else None.

    Where launches could not be queued ahead, the host's time is in the timed window and is taken off it.
    """
    timed_us = timing.time_us
    host_us = statistics.median(timing.host_us) if timing.host_us and timing.launch_hidden is not True else 0.0
    most_us = _MOST_TIMES * timed_us + _SLACK_US
    least_us = _LEAST_TIMES * (timed_us - host_us) - _SLACK_US
    if math.isfinite(traced_us) and least_us <= traced_us <= most_us:
        return None
    return (
        f"its kernels took {traced_us:.1f} µs under the profiler, where a timed call took {timed_us:.1f} µs: that is "
        "not the same work, so whose kernels were timed is not known"
    )
