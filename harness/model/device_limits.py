"""How far clocks may be trusted on each kind of device, and what the judge must do otherwise there.

Each backend carries one `DeviceLimits`. Whoever holds a time against another asks it, and never which device it has.
Thresholds that are the same on every device stand where they are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ProbeLimits:
    """From where on a probe's gain is a finding, and from where on it is blamed on the candidate. `clock` names them."""

    clock: str
    # By how much a time must fall to be a finding: a share of the call, and at least so many µs.
    share: float
    least_us: float
    # Less than this is doubted and not blamed on anyone.
    blamed_us: float
    # Whether a call's times hold from one segment to the next, so that the segment before tells the usual time.
    is_steady: bool = False
    # Whether the device waits for the host in each call, so that no other segment stands in for the one of a probe.
    waits_for_host: bool = False


@dataclass(frozen=True)
class DeviceLimits:
    """What the judge holds the clocks of one kind of device against. Of a share and µs the larger counts."""

    # Launches can be queued behind a gate until all of them are there, and run then without the host. Elsewhere each
    # launch waits for the judge twice: for its inputs, and for its timed window.
    gates_queues: bool
    # The kernels that run are recorded; elsewhere a profiler lists operators, and the time of the host's cores beside them.
    lists_kernels: bool
    # Calls run on the host's own cores: compilers, imports and the judge's own work take these from what is timed, and
    # a pause of a busy core falls on single launches.
    is_host: bool
    # In words, by whose clock a call is ranked.
    whose_clock: str

    # How far a launch's wall time beyond the reported one may lie above the control's.
    wall_share: float
    wall_us: float
    # What is added to these µs where each call has work on two streams of its own, which wait as the harness's steps run.
    streams_us: float
    # What is added to them at most around a call that is longer than the control's, of which the steps take longer.
    long_call_us: float
    # How much longer than its own clock says a call may take by the judge's before all of that costs it rank and word:
    # a share of the call, and at least so many µs.
    unvouched_share: float
    unvouched_us: float
    # How much longer the harness's steps may take around the control for each ms that its call is longer.
    longer_us_per_ms: float
    # What leaving the flush out would gain, where it lies in the wall time of a launch.
    flush_gain_us: float
    # So many times what is allowed is no longer a matter of chance: below it a disturbed machine would look the same.
    certain_times: float
    # What may pass between the end of a segment and its report beyond the control's; below the third nobody is blamed.
    tail_share: float
    tail_us: float
    tail_blamed_us: float
    # By how much eager may be slower beside a candidate than beside the control; below the third nobody is blamed.
    slowed_share: float
    slowed_us: float
    slowed_blamed_us: float
    # How far a traced call's and the judge's own clock may lie from the time that ranks before it is noted.
    apart_share: float
    traced_apart_us: float
    wall_apart_us: float
    # What a traced launch may take: shares of a timed one, and so much longer or shorter besides: what the markers
    # around a recorded one take, or one pause of a busy CPU.
    traced_least: float
    traced_most: float
    traced_slack_us: float
    # To what a speedup has to be known; None where an interval is as wide as it says.
    known_to: float | None
    # A baseline that takes longer shows nothing of what a process adds to each launch; 0 where a process adds nothing.
    in_worker_below_us: float
    # Calls of a queue behind the gate, and those of one that could not be gated.
    probe: ProbeLimits
    ungated_probe: ProbeLimits

    @property
    def process_adds(self) -> bool:
        """Whether a process adds something of its own to each launch for as long as it lives."""
        return self.in_worker_below_us > 0


CUDA = DeviceLimits(
    gates_queues=True, lists_kernels=True, is_host=False, whose_clock="by events",
    # On an H200 it lay between 219 and 228 µs for 18 entries up to 8 ms, and at 248 for one of 46 ms; a control lay
    # 26 higher beside some compilers and 390 with one on every core, and is timed anew when they have ended. Around calls
    # with 2 to 16 streams of their own it was 4 to 43 µs higher, whatever their length, with one or none up to 10.
    wall_share=0.02, wall_us=25.0, streams_us=20.0, long_call_us=10.0, unvouched_share=0.02, unvouched_us=3.0,
    # On an H200 the steps took 12 µs longer at 2.7 ms, 26 at 6.6, 31 and 33 at 8, 37 at 72 and 50 at 46. The flush
    # alone takes 77.
    longer_us_per_ms=4.0, flush_gain_us=77.0,
    certain_times=2.0,
    # With compilers at work beside them honest processes on an H200 reported 2 to 7 ms late now and then, one of them
    # by 1.9 ms in the median.
    tail_share=0.05, tail_us=300.0, tail_blamed_us=8000.0,
    # Over nine entries on an H200 eager's medians lay within 0.07 % of each other.
    slowed_share=0.02, slowed_us=3.0, slowed_blamed_us=6.0,
    # On an H200 the traced time of 31 candidates from 160 µs to 72 ms lay within 2.9 % of the events', the judge's
    # within 27 µs, and 44 for one of 46 ms.
    apart_share=0.1, traced_apart_us=20.0, wall_apart_us=50.0,
    # On an H100 recorded calls of 72 honest rows from 0.15 to 46 ms took 0.987 to 1.03 of the timed ones.
    traced_least=0.95, traced_most=1.05, traced_slack_us=6.0,
    # Of 374 rows of candidates and baselines on H200s that nobody disturbed the widest interval was ±3.9 % (5 processes
    # at 16 µs, else ±3.0 %). With a process beside it one of three calls of 73 ms each was ±42 %, and a call that began
    # early in one segment of three ±14 %.
    known_to=0.05,
    # What a process adds to a short candidate beside a longer baseline is in no baseline's time, inside or out. Beside
    # a candidate that takes as long it does show (0.02 % of 2.7 ms on an H200), and counts where intervals as narrow as
    # the margin are asked for.
    in_worker_below_us=1000.0,
    # Of 40 honest entries on an H200, from 0.16 to 72 ms, none gained more than 0.22 %, below 1 ms more than 0.8 µs.
    probe=ProbeLimits("cuda", share=0.05, least_us=3.0, blamed_us=0.0, is_steady=True),
    ungated_probe=ProbeLimits("ungated", share=0.1, least_us=20.0, blamed_us=100.0, waits_for_host=True),
)

# On a two-core CPU with four other loads an honest call of 3.2 ms took 1.3 in all five pairs.
_CPU_PROBE = ProbeLimits("cpu", share=0.4, least_us=1000.0, blamed_us=4000.0)
CPU = DeviceLimits(
    gates_queues=False, lists_kernels=False, is_host=True, whose_clock="by the worker's clock",
    # It is counted from the opening of the window, and a turn is a frame that can be late. The flush lies before it.
    wall_share=0.25, wall_us=1500.0, streams_us=0.0, long_call_us=0.0, unvouched_share=0.05, unvouched_us=50.0,
    longer_us_per_ms=0.0, flush_gain_us=math.inf,
    certain_times=4.0,
    tail_share=0.25, tail_us=3000.0, tail_blamed_us=24000.0,
    # Over nine entries on two cores eager's medians lay within 2.5 % of each other; a busy machine made an eager of
    # 143 µs take 1406.
    slowed_share=0.25, slowed_us=200.0, slowed_blamed_us=2000.0,
    # A busy CPU takes milliseconds from either clock.
    apart_share=0.5, traced_apart_us=5000.0, wall_apart_us=5000.0,
    traced_least=0.4, traced_most=1.5, traced_slack_us=5000.0,
    # With other loads an interval is as wide as it says.
    known_to=None,
    in_worker_below_us=0.0,
    probe=_CPU_PROBE, ungated_probe=_CPU_PROBE,  # no queue is gated there
)


def limits_of(kind: str) -> DeviceLimits:
    """Return those of a device of that kind, "cuda" or "cpu", for who has a record and no backend."""
    return {"cuda": CUDA, "cpu": CPU}[kind]
