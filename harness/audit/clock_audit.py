"""Whether a time may be believed: the floor, the judge's own clock, early work, and what became of the baseline.

A worker keeps its own time, so the judge looks for what a lie about it would leave elsewhere: in the wall clock of
the launches, in times that fall when inputs lie readable before the window opens or rise when they have other values,
in an eager that is slower while this worker lives. Each finding is a verdict with its figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.launch import failures
from harness.model.device_limits import DeviceLimits
from harness.model.verdict import ReasonCode, Status
from harness.timing.control import Control
from harness.timing.doubts import by_chance_us, doubt, is_references, is_ungated
from harness.timing.probes.schedule import Probe
from harness.timing.timings import Timing

# What passes on a CPU before the window is opened is for the most part the flush, whose words are looked at by
# themselves; a share of the control's, for it goes by what others do with the memory of that machine.
_FLUSH_SHARE = 0.25
# A call that is shorter is faster by more than a per cent where its cache is not made cold.
_GAINS_BELOW_US = 1000.0
# Less than this is doubted and not blamed on anyone where the queue could not be gated, so that the device waits for
# the host: a call of 0.38 ms that synchronises had 97 µs more than explained on an H200, and 185 to 288 beside another
# process.
_UNGATED_BLAMED_US = 1000.0
_FLOOR_SHARE = 0.8
# Nor is an eager blamed on anyone that is slower by less than this share where the host shows, which takes another third
# from one segment to the next by itself.
_HOSTS_SHARE = 0.5


def check_times(timing: Timing, limits: DeviceLimits, floor_us: float | None, control: Control | None) -> None:
    """Raise Failed where the times of a candidate on a device with these `limits` cannot be what it took."""
    if floor_us is not None and timing.time_us < _FLOOR_SHARE * floor_us:
        raise failures.failed(
            Status.REJECTED, ReasonCode.BELOW_FLOOR,
            f"{timing.time_us:.1f} µs is less than {_FLOOR_SHARE:g} of {floor_us:.1f} µs, the time that "
            "the useful work takes at this device's fastest rates: the clock was fooled, or work left undone",
        )
    _check_probes(timing, by_chance_us(timing) if is_references(timing, limits, control) else 0.0)
    if control is not None:
        unexplained_us = control.unexplained_us(timing)
        try:
            if unexplained_us is not None:
                _check_wall_clock(timing, limits, unexplained_us, control)
            if control.flush_us is not None and timing.flush_overhead_us is not None:
                _check_flush(timing, limits, timing.flush_overhead_us - control.flush_us, control.flush_us)
            if control.tail_us is not None and timing.tail_us is not None:
                _check_tail(timing, limits, timing.tail_us - control.tail_us)
        except failures.Failed as failure:
            failure.beside_control = True
            raise


def _check_wall_clock(timing: Timing, limits: DeviceLimits, unexplained_us: float, control: Control) -> None:
    less_us = control.less_us(timing, limits)
    # Streams that wait in the queue make the harness's steps longer, and so does a call that is longer than the control's.
    more_us = limits.streams_us if timing.other_streams > 1 else 0.0
    more_us += control.around_longer_us(timing, limits)
    usual_us = max(limits.wall_share * timing.time_us, limits.wall_us, control.steps_share_us)
    allowed_us = max(usual_us, limits.wall_us + more_us)
    if -less_us <= unexplained_us <= allowed_us:
        return
    if unexplained_us < 0:
        steps = "filling, flushing the cache, copying the result" if limits.gates_queues else "copying the result"
        what = f"the harness's own steps around it took {-unexplained_us:.1f} µs less than they must"
        doing = f"one of them ({steps}) was left out or shortened"
        # Where nobody knows what they take without the host, nobody is blamed for less, but for a call that gains by it.
        is_known = control.is_gated or timing.time_us < _GAINS_BELOW_US
        certain = not limits.is_host and is_known and unexplained_us < -limits.certain_times * less_us
    else:
        what = (
            f"by the judge's clock a launch took {unexplained_us:.1f} µs more than that and the harness's own steps explain"
        )
        doing = "work was done outside the timed window"
        in_most_us = _in_most(unexplained_us, timing.wall_overhead_us, timing.wall_less_time_us, limits)
        blamed_us = max(limits.certain_times * usual_us + more_us, _UNGATED_BLAMED_US if is_ungated(timing, limits) else 0.0)
        certain = in_most_us > blamed_us
    _fail(timing, f"its clock says {timing.time_us:.1f} µs a call, but {what}", doing, certain=certain)


def _in_most(unexplained_us: float, mean_us: float, each_us: Sequence[float], limits: DeviceLimits) -> float:
    """How much is unexplained in three of four launches, of which `each_us` has what `mean_us` is the mean of.

    On a CPU pauses of tens of milliseconds fall on some launches where many processes wait for its cores, and nobody is
    blamed for these. On a GPU it is what is unexplained in the mean.
    """
    if not limits.is_host:
        return unexplained_us
    return unexplained_us - (mean_us - sorted(each_us)[len(each_us) // 4])


def _fail(
    timing: Timing, sentence: str, doing: str, *, certain: bool, code: ReasonCode = ReasonCode.CLOCKS_DISAGREE
) -> None:
    """Raise the verdict on what `sentence` says, which comes of the candidate's `doing` it where that is `certain`."""
    if certain:
        raise failures.failed(Status.REJECTED, code, f"{sentence}: {doing}")
    raise failures.failed(Status.UNSURE, ReasonCode.NOISY, doubt(timing, sentence, doing))


def _check_flush(timing: Timing, limits: DeviceLimits, unexplained_us: float, controls_us: float) -> None:
    allowed_us = max(limits.wall_us, _FLUSH_SHARE * controls_us)
    if abs(unexplained_us) <= allowed_us:
        return
    sentence = (
        f"its clock says {timing.time_us:.1f} µs a call, but before a timed window was opened {abs(unexplained_us):.1f} µs "
        f"{'more' if unexplained_us > 0 else 'less'} passed than the {controls_us:.1f} µs of the control"
    )
    doing = "work was done before its time" if unexplained_us > 0 else "a step of the harness's own was shortened"
    in_most_us = _in_most(unexplained_us, timing.flush_overhead_us, timing.flush_us, limits)
    _fail(timing, sentence, doing, certain=in_most_us > limits.certain_times * allowed_us)


def _check_tail(timing: Timing, limits: DeviceLimits, excess_us: float) -> None:
    segment_us = timing.launches_per_segment * timing.time_us
    allowed_us = max(limits.tail_share * segment_us, limits.tail_us)
    if excess_us <= allowed_us:
        return
    sentence = (
        f"after the last of {timing.launches_per_segment} launches of {timing.time_us:.1f} µs each its report came "
        f"{excess_us:.0f} µs later than the control's"
    )
    certain = excess_us > max(limits.tail_blamed_us, limits.certain_times * allowed_us)
    _fail(timing, sentence, "work was left for the end, when no window is open", certain=certain)


@dataclass(frozen=True)
class _Words:
    """`often` is what a call took now and then, `always` what each took (two places for µs), `doing` the cause."""

    often: str
    always: str
    doing: str
    code: ReasonCode = ReasonCode.CLOCKS_DISAGREE


_BEGINS = "something of it (another stream, a thread, a waiting kernel) begins to work before its time"
_OF_PROBES = {
    Probe.EARLY_READ: _Words(
        "less when its inputs were readable for a while before the timed window opened",
        "{0:.1f} µs, but {1:.1f} µs when its inputs are readable for a while before the timed window opens", _BEGINS,
    ),
    Probe.LATE_INPUT: _Words(
        "more when the last of its inputs came as the timed window opened",
        "{1:.1f} µs, but {0:.1f} µs when the last of its inputs come as the timed window opens", _BEGINS,
    ),
    Probe.INPUT_VALUE: _Words(
        "more when its inputs had random signs, or other low bits",
        "{1:.1f} µs, but {0:.1f} µs when its inputs have random signs, or other low bits",
        "what it does goes by how the inputs are drawn, which is not the problem", ReasonCode.GOES_BY_VALUES,
    ),
}


def _check_probes(timing: Timing, chance_us: float) -> None:
    """Of a gain of `chance_us` nothing is made."""
    for probe, words in _OF_PROBES.items():
        outcome, doing = timing.probe_results.get(probe), words.doing
        if outcome is None or not (outcome.is_finding or outcome.was_often_one):
            continue
        if chance_us and outcome.gained_us <= chance_us:
            continue
        if outcome.is_finding:
            sentence = f"a call takes {words.always.format(outcome.usual_us, outcome.early_us)}"
        else:
            sentence = f"{outcome.findings} times, though not each time, a call took {words.often}"
            doing = f"{doing} now and then"
        _fail(timing, sentence, doing, certain=outcome.is_certain, code=words.code)


def check_baseline(
    timing: Timing, limits: DeviceLimits, control: Control | None, eager_alone_us: Callable[[bool], float]
) -> None:
    """Raise Failed when eager was slowed down beside this candidate; `eager_alone_us` times it again, held or not."""
    if control is None:
        return
    usual_us, beside_us = control.baseline_us, timing.baseline_time_us
    allowed_us = usual_us + _slower_us(usual_us, limits)
    if beside_us <= allowed_us:
        return
    if is_references(timing, limits, control) and beside_us <= (1 + _HOSTS_SHARE) * usual_us:
        return  # the interval reaches what it would be over the usual time
    # Where the candidate's launches could not be queued ahead, nor are eager's beside it: the host is in their time.
    is_gated = not (is_ungated(timing, limits) and control.is_gated)
    alone_us = eager_alone_us(is_gated)
    if not is_gated:
        usual_us = max(usual_us, alone_us)
        allowed_us = usual_us + _slower_us(usual_us, limits)
        if beside_us <= allowed_us:
            return
    by_host_us = 0.0 if is_gated else _HOSTS_SHARE * usual_us
    blamed_us = max(limits.certain_times * (allowed_us - usual_us), limits.slowed_blamed_us, by_host_us)
    if alone_us > allowed_us or beside_us - usual_us <= blamed_us:
        failure = failures.failed(
            Status.UNSURE, ReasonCode.NOISY,
            f"eager took {beside_us:.1f} µs in its rounds and {alone_us:.1f} µs after them, where it took "
            f"{control.baseline_us:.1f} µs before: something else is using this device; run again when it is quiet",
        )
    else:
        failure = failures.failed(
            Status.REJECTED, ReasonCode.CLOCKS_DISAGREE,
            f"eager took {beside_us:.1f} µs while this candidate's process lived, and {alone_us:.1f} µs once it was "
            f"gone ({control.baseline_us:.1f} µs beside the control): it slows the baseline down",
        )
    failure.beside_control = True
    raise failure


def _slower_us(usual_us: float, limits: DeviceLimits) -> float:
    """By how much more eager may take beside a candidate."""
    return max(limits.slowed_share * usual_us, limits.slowed_us)
