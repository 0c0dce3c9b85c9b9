"""What is said of doubts about an entry, and of those where launches on a GPU could not be queued ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from harness.launch.failures import Failed
from harness.model.device_limits import DeviceLimits
from harness.model.verdict import ReasonCode
from harness.timing.control import Control
from harness.timing.timings import Timing

# Kernels, copies and fills that a stream takes before whoever queues more waits for some to have run. The shortest queue is
# of two calls.
STREAM_TAKES = 4000
_CALLS = 2
# Where the reference's launches cannot be queued ahead, so many times what the middle half of the times spans is chance: on
# an H100 honest calls of 8 to 36 ms and of 1,100 to 6,200 kernels took up to four times as long now and then.
_BY_CHANCE = 3.0
_UNQUEUED = "launches could not be queued ahead"
_HOSTS = "so the host's time is in theirs"
_WAITS = (
    "forward waits for the device in each call (.item(), .cpu(), print, torch.cuda.synchronize()){or_more}, {hosts}: leave "
    "that out, and its time will be the GPU's"
)


def is_ungated(timing: Timing, limits: DeviceLimits) -> bool:
    """Whether launches could not be queued ahead on a device where they can be."""
    return limits.gates_queues and timing.launch_hidden is False


def is_references(timing: Timing, limits: DeviceLimits, control: Control | None) -> bool:
    """Whether launches on a GPU could not be queued ahead because those of the reference cannot: the host's time is in all
    rows then, and nobody gains a doubt's benefit by choosing it. `control` is None for the reference itself.
    """
    return is_ungated(timing, limits) and (control is None or not control.is_gated)


def by_chance_us(timing: Timing) -> float:
    """What calls differ by from each other by chance where the host's time is in them."""
    times_us = sorted(timing.candidate_us)
    return _BY_CHANCE * (times_us[3 * len(times_us) // 4] - times_us[len(times_us) // 4])


def doubt(timing: Timing, sentence: str, doing: str) -> str:
    """`sentence`, and what it might be `doing`; not where the host's time, as uneven by itself, is in its launches."""
    if timing.launch_hidden is False:
        return sentence
    return f"{sentence}: {doing}, or something else disturbs this machine; run again when it is quiet"


@contextmanager
def told_why_it_scatters(timing: Timing, limits: DeviceLimits, count_kernels: Callable[[], int]) -> Iterator[None]:
    """A doubt that is raised meanwhile is also said to come of that, where `timing` on a device with these `limits` is such.

    The host of a short call takes longer than the device, and by another third from one segment to the next. `count_kernels`
    says how many kernels a call is, 0 where that is not known; it is asked in such a doubt only.
    """
    try:
        yield
    except Failed as failure:
        if is_ungated(timing, limits) and failure.verdict.reason_code is ReasonCode.NOISY:
            why = _why(timing.waits, count_kernels() if timing.waits else 0)
            failure.verdict = replace(failure.verdict, reason=f"{failure.verdict.reason}. {why}")
        raise


def _why(waits: bool, kernels: int) -> str:
    """`waits` says whether it is the entry's own queue that is never full, of calls of so many `kernels`."""
    if not waits:
        return (
            f"The reference's {_UNQUEUED}, since it waits for the device in each call, or {_CALLS} calls are more kernels than a stream takes "
            f"(about {STREAM_TAKES:,}), and then nobody's are: the host's time is in all of them"
        )
    if _CALLS * kernels >= STREAM_TAKES:
        return (
            f"Its {_UNQUEUED}, since {_CALLS} calls of {kernels:,} kernels are more than a stream takes (about {STREAM_TAKES:,}), "
            f"{_HOSTS}: that is how such a call runs, and no fault of it"
        )
    or_more = "" if kernels else " or queues more than a stream takes"
    return f"Its {_UNQUEUED}, since {_WAITS.format(or_more=or_more, hosts=_HOSTS)}"
