"""What is said of doubts about a contestant whose launches on a GPU could not be queued ahead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from harness.referee.failures import Failed
from harness.referee.timed import Timing
from harness.verdict import ReasonCode

_SAID = (
    "Its launches could not be queued ahead, since forward waits for the device in each call (.item(), .cpu(), print, "
    "torch.cuda.synchronize()) or queues more than a stream takes, so the host's time is in theirs: leave that out, and its "
    "time will be the GPU's"
)


@contextmanager
def told_why_it_scatters(timing: Timing, kind: str) -> Iterator[None]:
    """A doubt that is raised meanwhile is also said to come of that, where `timing` on a device of `kind` is such.

    The host of a short call takes longer than the device, and by another third from one segment to the next.
    """
    try:
        yield
    except Failed as failure:
        if kind == "cuda" and timing.waits and failure.verdict.reason_code is ReasonCode.NOISY:
            failure.verdict = replace(failure.verdict, reason=f"{failure.verdict.reason}. {_SAID}")
        raise
