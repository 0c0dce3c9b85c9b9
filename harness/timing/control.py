"""The control: eager in a worker, and what the harness's own steps are seen to take around it and the other baselines.

Whatever a candidate leaves beyond that is held against it by `clock_audit`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from harness.model.device_limits import DeviceLimits
from harness.timing.stats import Interval, PooledBaseline
from harness.timing.three_clocks import ThreeClocks
from harness.timing.timings import Timing

# A launch's wall time may lie below the control's by this share of the call. What is shortened of the harness's steps
# gains no more than what a flush that was left out would: the L2's bytes need not be read again, 15 µs on an H200. Where a
# hundredth of a call is as much as the flush takes, 77 µs, that is 0.2 % of it; below 2.5 ms (CPU: 150 ms) the device's own
# figure is more. An exact copy of a loop of 30 ms had 151 µs less than the control, half a per cent.
LESS_SHARE = 0.01
# Where that hundredth of the steps is as much as the flush takes, nothing but larger steps (inputs filled in, outputs copied,
# what was returned overwritten) can be missed, each of them a tenth of all or more. Around exact copies on an H100 steps of
# 16 ms were up to 1.7 % shorter than around the control. docs/design/clock-audit.md has the table of what is let through.
_LESS_OF_LONG_STEPS = 0.025
# Around a call that is longer than the control's the steps take longer by up to this share of what it is longer. On an H200
# they took 2 to 4 µs more around one of 0.12 ms than around one of 26 µs, and 6 to 11 more around one of 0.25 ms.
_AROUND_LONGER_SHARE = 0.04
# The steps around a long call take longer than around a short one, at most by so much.
_LONGER_MOST_US = 40.0


@dataclass(frozen=True)
class Control:
    """What eager in a worker left behind, in µs: wall time (on a CPU from the opening of the window) beyond the
    reported one, and the baseline's time beside it.

    `ungated_overhead_us` is the first where no queue was gated, so that the harness's own Python shows, and
    `synchronised_overhead_us` where on a GPU each call waited for the device besides, so that all of it does; `tail_us` is
    what passed between the end of a segment's last launch and its report, `flush_us` on a CPU what passed before a
    launch's window was opened. `pooled_baseline` is the baseline's mean over several processes, where it was timed in
    any. `others_us` are the first of the harness's other baselines. It `is_gated` where its launches could be queued
    ahead: else nobody has seen what the steps take where the host does not show. Its own speedup over itself, which is
    one, may by its interval be off that by the factor 1 + `apart`, up or down. `typical_overhead_us` is the overhead of a
    typical launch from the opening of its window on, known to `overhead_reach_us`, and `others_typical_us` the same of the
    other baselines.
    """

    overhead_us: float | None
    ungated_overhead_us: float | None
    baseline_us: float
    tail_us: float | None = None
    flush_us: float | None = None
    pooled_baseline: PooledBaseline | None = None
    synchronised_overhead_us: float | None = None
    others_us: tuple[float, ...] = ()
    is_gated: bool = True
    apart: float = 0.0
    typical_overhead_us: float | None = None
    overhead_reach_us: float = 0.0
    others_typical_us: tuple[float, ...] = ()

    @staticmethod
    def of(timing: Timing) -> Control:
        return Control(
            timing.wall_overhead_us, timing.ungated_overhead_us, timing.baseline_time_us, timing.tail_us,
            timing.flush_overhead_us, synchronised_overhead_us=timing.synchronised_overhead_us,
            is_gated=timing.launch_hidden is not False,
            apart=0.0 if timing.speedup is None else _off_one(timing.speedup),
            typical_overhead_us=timing.typical_overhead_us, overhead_reach_us=timing.overhead_reach_us,
        )

    def and_baseline(self, timing: Timing) -> Control:
        """This control, with what another baseline left: the harness's steps took no longer around that."""
        all_us, usual_us = timing.wall_overhead_us, timing.typical_overhead_us
        if all_us is None or usual_us is None:
            return self
        return replace(self, others_us=(*self.others_us, all_us), others_typical_us=(*self.others_typical_us, usual_us))

    def renewed(self, timing: Timing) -> Control:
        """What `timing` of the control left, once more, with what the other baselines left before.

        What this one's steps took counts with those, for the machine may be disturbed now: beside many compilers a renewed
        control had 0.7 ms more than an exact copy of it, which was rejected for the difference.
        """
        others_us = self.others_us if self.overhead_us is None else (*self.others_us, self.overhead_us)
        return replace(Control.of(timing), others_us=others_us, others_typical_us=self.others_typical_us)

    def allows_more_than(self, other: Control, limits: DeviceLimits) -> bool:
        """Whether the harness's steps took longer around it than around the `other` by what is held against a candidate."""
        if self.overhead_us is None or other.overhead_us is None:
            return self.overhead_us is None
        return self.overhead_us - other.overhead_us > max(limits.wall_us, LESS_SHARE * self.baseline_us)

    def unexplained_us(self, timing: Timing) -> float | None:
        """By how much a launch took longer by the wall clock than its time and the harness's own steps, or (below 0) less;
        None where it is not known.

        No steps take less than the least that a baseline's took. Those of a queue that could not be gated take as long
        as the control's do when it is not gated, or as it waits for each call, and a call may do a part of that; where
        the host is fast it shows in none of them. What the worker says of the host's time explains nothing, since it
        could say anything.
        """
        most = [self.overhead_us]
        if timing.launch_hidden is False:
            most = [self.ungated_overhead_us, self.synchronised_overhead_us]
        most = [each for each in most if each is not None]
        least = [each for each in (*most, self.overhead_us, *self.others_us) if each is not None]
        seen_us = timing.wall_overhead_us
        return None if seen_us is None or not most else seen_us - min(max(seen_us, min(least)), max(most))

    def less_us(self, timing: Timing, limits: DeviceLimits) -> float:
        """How much less than they must the harness's own steps may seem to take around that call.

        Around a control that could not be queued ahead, the host is in what was seen of them, by as much as its readings
        differ; of that again the share counts at most, so that for a short call it is nothing.
        """
        share_us = LESS_SHARE * timing.time_us
        steps_us = self.steps_share_us
        if steps_us > limits.flush_gain_us:
            steps_us = _LESS_OF_LONG_STEPS * (self.overhead_us or 0.0)
        allowed_us = max(limits.wall_us + self.longer_us(timing, limits), share_us, steps_us)
        seen = (self.overhead_us, self.ungated_overhead_us, self.synchronised_overhead_us, *self.others_us)
        known = [each for each in seen if each is not None]
        return allowed_us if self.is_gated or not known else allowed_us + min(max(known) - min(known), share_us)

    def unvouched_us(self, timing: Timing, limits: DeviceLimits) -> float:
        """How much longer than it says a call may take, for all that the judge's clock shows; 0 where that is no more than
        each row is allowed, or is not known.

        What the harness does after a call takes no less than the least that it took after a baseline's. Where its queue could
        not be gated it takes as long as around the control then.
        """
        seen_us = timing.typical_overhead_us
        if seen_us is None or self.typical_overhead_us is None:
            return 0.0
        if timing.launch_hidden is False:
            ungated = (self.overhead_us, self.ungated_overhead_us, self.synchronised_overhead_us)
            steps_us = max((each for each in ungated if each is not None), default=math.inf)
        else:
            steps_us = min([self.typical_overhead_us, *self.others_typical_us])
        most_us = seen_us - steps_us + math.hypot(timing.overhead_reach_us, self.overhead_reach_us)
        return most_us if most_us > max(limits.unvouched_share * timing.time_us, limits.unvouched_us) else 0.0

    @property
    def steps_share_us(self) -> float:
        """By how much the harness's own steps differ by themselves: they move gigabytes around the calls of some problems.

        On an H100 steps of 11 to 15 ms were up to 0.8 % shorter around an exact copy. What leaves one of them out saves a
        tenth of them or more.
        """
        return LESS_SHARE * (self.overhead_us or 0.0)

    def around_longer_us(self, timing: Timing, limits: DeviceLimits) -> float:
        """By how much the harness's own steps may take longer around that call because it is longer than the control's.

        So is each call that is slower than eager, and no other: nothing that is faster has any of it.
        """
        return min(_AROUND_LONGER_SHARE * max(0.0, timing.time_us - self.baseline_us), limits.long_call_us)

    def longer_us(self, timing: Timing, limits: DeviceLimits) -> float:
        """By how much the harness's own steps may take longer than around that call, where the least was seen, because the
        control's call is longer. Another baseline that had less than the control has shown a part of it.
        """
        longer_ms = max(0.0, self.baseline_us - timing.time_us) / 1e3
        shown_us = 0.0 if self.overhead_us is None else self.overhead_us - min([self.overhead_us, *self.others_us])
        return max(0.0, min(limits.longer_us_per_ms * longer_ms, _LONGER_MOST_US) - shown_us)


def _off_one(speedup: Interval) -> float:
    """How much more than one the factor is by which its interval reaches off one, up or down."""
    return max(speedup.hi, 1 / speedup.lo if speedup.lo > 0 else math.inf) - 1


def reconcile(timing: Timing, control: Control | None, traced_us: float | None, limits: DeviceLimits) -> ThreeClocks:
    """What the three clocks say of a call, within the device's `limits`. `traced_us` is how long the traced one kept it busy, if any."""
    unexplained_us = None if control is None else control.unexplained_us(timing)
    wall_us = None
    if unexplained_us is not None:
        # What the steps around a longer control take longer is no disagreement either.
        wall_us = timing.time_us + max(unexplained_us, min(0.0, unexplained_us + control.longer_us(timing, limits)))
    return ThreeClocks(timing.time_us, traced_us or None, wall_us)
