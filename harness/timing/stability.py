"""Whether a candidate's times are of one kind: what begins early now and then shows in how they scatter, unprobed."""

from __future__ import annotations

from statistics import median_high

from harness.launch import failures
from harness.model.device_limits import DeviceLimits
from harness.model.verdict import ReasonCode, Status
from harness.timing.doubts import doubt
from harness.timing.stats import Interval, reach_of
from harness.timing.timings import Timing

# Fewer rounds than these have a wider interval of the same scatter: an honest call that had the time for 4 alone was ±5.6 %,
# which would have been ±2.4 % of 10.
_OF_ROUNDS = 10
# A launch is of another kind than most where it takes so much less, a share of the call or so many µs, or so many times what
# the launches of a segment lie apart, but at most half; and a candidate is in doubt that has a share, or a number, of them.
# Of 166 sets of times of honest calls on H200s, from 0.16 to 46 ms, none had as many that were 4.5 % faster; of 16 µs two
# kinds of launch lie up to 2 µs apart, half of them each. Honest launches that scatter by 5 % would be doubted in up to 85 % of
# runs at 50 µs without the third (simulated), and in none with it.
_FASTER_SHARE, _FASTER_LEAST_US, _FASTER_APART, _FASTER_MOST_SHARE = 0.1, 3.0, 6.0, 0.5
_FAST_SHARE, _FEWEST_FAST, _SEVERAL = 0.02, 3, 4


def check_evenness(timing: Timing, limits: DeviceLimits) -> None:
    """Raise Failed where a GPU's launches are of two kinds, and a few take much less than the others do.

    Logs make much of them, and a probe, which sees what most launches do, may see none. Those below half of the call count
    in any case; others are held against their own segment too, where that has several, since clocks may rise and fall from
    one to the other.
    """
    usual_us = median_high(timing.candidate_us)
    half_us = _FASTER_MOST_SHARE * usual_us
    beside = [  # each launch, and what its segment says that it should take
        (time_us, median_high(segment) if len(segment) >= _SEVERAL else usual_us)
        for candidate in timing.segments for segment in candidate for time_us in segment
    ]
    apart_us = median_high([abs(time_us - own_us) for time_us, own_us in beside] or [0.0])
    least_us = min(max(_FASTER_SHARE * usual_us, _FASTER_LEAST_US, _FASTER_APART * apart_us), half_us)
    fast = sum(time_us < max(min(usual_us, own_us) - least_us, half_us) for time_us, own_us in beside)
    if limits.known_to is None or fast < max(_FEWEST_FAST, _FAST_SHARE * len(timing.candidate_us)):
        return
    sentence = (
        f"{fast} of {len(timing.candidate_us)} timed launches took less than {usual_us - least_us:.1f} µs, where most take "
        f"about {usual_us:.1f}"
    )
    doing = "it begins to work before its time now and then, or takes so long by what it is given"
    raise failures.failed(Status.UNSURE, ReasonCode.NOISY, doubt(timing, sentence, doing))


def is_known(speedup: Interval, rounds: int, limits: DeviceLimits, half_width: float) -> bool:
    """Return whether an interval from so many rounds, on a device of such `limits`, says what the speedup is."""
    if limits.known_to is None:
        return True
    wider = reach_of(rounds) / reach_of(_OF_ROUNDS) if 2 <= rounds < _OF_ROUNDS else 1.0
    return speedup.half_width <= max(limits.known_to * wider, half_width) * speedup.estimate


def check_spread(timing: Timing, limits: DeviceLimits, half_width: float) -> None:
    """Raise Failed where the times of a candidate scatter so much that its speedup is not known, in a ratio.

    `half_width` is what the settings ask for. Who is faster in some segments only is faster by a mean that says little,
    and a probe of another segment finds nothing.
    """
    speedup = timing.scattered
    if speedup is None or is_known(speedup, len(timing.ratios), limits, half_width):
        return
    sentence = (
        f"its times differ so much from round to round that its speedup is only known to lie between {speedup.lo:.3g} and "
        f"{speedup.hi:.3g}"
    )
    doing = "it works outside its timed windows now and then"
    raise failures.failed(Status.UNSURE, ReasonCode.NOISY, doubt(timing, sentence, doing))
