"""Log-ratios of rounds without what the places of launches in a GPU's rotation add to their times.

A cold call takes longer or shorter by the number of kernels that its process has launched before, modulo four, and a
segment of sixteen launches has each place four times (wire/rotation.py). Nobody is told which launch has which: that
follows from how many kernels the calls of an arm have, and from where a segment began, and both are found in the times
of all its segments. What a place adds sums to zero over the four, so the mean of a segment stays what it was; but what
is left scatters by chance alone, and its middle half is then what a segment counts as.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.statistics.rounds import log_ratio
from harness.statistics.trimmed import trimmed_mean

if TYPE_CHECKING:
    import numpy

PLACES, ROTATION = 4, 16
# Chance gives places a fifth of a segment's variance, and the most of any 36 % in 10,000 arms of 16 segments (simulated,
# Student's t with 3 degrees of freedom); of calls of 16 µs on an H200 it is 60 to 64 %.
_LEAST_SHARE = 0.45
_FEWEST_SEGMENTS = 16
_ALIGNED = 6  # times that segments are laid over their own median, which nothing moves any more after three or four
_TRIM, _FAR = 0.25, 4.0  # four times the median distance is 2.7 standard deviations

# The segments of one arm in one round, each a list of times per launch in µs.
Segments = Sequence[Sequence[float]]


def log_ratios(a_rounds: Sequence[Segments], b_rounds: Sequence[Segments]) -> list[float]:
    """`log_ratio` of each round; where places show in the times of both arms, without what they add.

    Raises ValueError as that does.
    """
    plain = [log_ratio(a, b) for a, b in zip(a_rounds, b_rounds, strict=True)]
    cleaned = [_without_places(rounds) for rounds in (a_rounds, b_rounds)]
    if any(each is None for each in cleaned):
        return plain
    a_logs, b_logs = cleaned
    return [b - a for a, b in zip(a_logs, b_logs, strict=True)]


def _without_places(rounds: Sequence[Segments]) -> list[float] | None:
    """What the segments of an arm come to in each round, in logs; None where nothing of places is seen."""
    lengths = {len(segment) for segments in rounds for segment in segments}
    if lengths != {ROTATION} or sum(map(len, rounds)) < _FEWEST_SEGMENTS:
        return None
    import numpy  # a tenth of a second, which a command that judges nobody shall not pay

    logs = numpy.log([segment for segments in rounds for segment in segments])
    place_of, share = max((_share(logs, kernels) for kernels in range(PLACES)), key=lambda found: found[1])
    if share < _LEAST_SHARE:
        return None
    left = iter(logs - _added(logs, place_of))
    return [sum(trimmed_mean(next(left).tolist(), _TRIM) for _ in segments) / len(segments) for segments in rounds]


def _share(logs: numpy.ndarray, kernels: int) -> tuple[numpy.ndarray, float]:
    """The place of each launch of a segment, counted from where it began, if calls have so many kernels modulo four; and
    the share of the variance within segments that lies between these places.
    """
    import numpy

    index = numpy.arange(ROTATION)
    place_of = (kernels * index + index // PLACES) % PLACES  # one kernel more after every fourth launch
    apart = logs - numpy.median(logs, axis=1, keepdims=True)
    far = _FAR * numpy.median(numpy.abs(apart))  # a launch that was interrupted would be most of the variance
    centred = apart.clip(-far, far)
    centred -= centred.mean(axis=1, keepdims=True)
    within = (centred**2).mean()
    between = numpy.mean([centred[:, place_of == place].mean(axis=1) ** 2 for place in range(PLACES)])
    return place_of, float(between / within) if within > 0 else 0.0


def _added(logs: numpy.ndarray, place_of: numpy.ndarray) -> numpy.ndarray:
    """What its place adds to each launch, in logs: the same four numbers for all segments, turned by where each began."""
    import numpy

    seen = numpy.stack([numpy.median(logs[:, place_of == place], axis=1) for place in range(PLACES)], axis=1)
    seen -= seen.mean(axis=1, keepdims=True)
    turned = numpy.stack([numpy.roll(seen, turn, axis=1) for turn in range(PLACES)])
    template = seen[(seen**2).sum(axis=1).argmax()]
    for _ in range(_ALIGNED):
        turns = ((turned - template) ** 2).sum(axis=2).argmin(axis=0)
        template = numpy.median(turned[turns, numpy.arange(len(seen))], axis=0)
        template = template - template.mean()
    return numpy.stack([numpy.roll(template, -turn)[place_of] for turn in turns])
