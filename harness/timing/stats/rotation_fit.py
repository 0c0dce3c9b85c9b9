"""Log-ratios of rounds without what the places of launches add to their times.

A cold call takes longer or shorter by the number of kernels that its process has launched before, modulo four, and by
where its inputs lie. A segment of sixteen launches has each place in that rotation four times (wire/rotation.py) and
each slot of inputs once. Nobody is told which launch has which place: that follows from how many kernels the calls of
an arm have, and from where a segment began, and both are found in the times of all its segments. What is taken off its
launches sums to zero over a segment; what is left scatters by chance alone, and its middle half is what the segment
counts as. As a place costs one slot more than another, and a segment has 16 of their 64 pairs, segments that began in
one place take longer than those of another: that is taken off too, and sums to zero over the four.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.timing.stats.round_order import log_ratio
from harness.timing.stats.trimmed_mean import trimmed_mean

if TYPE_CHECKING:
    import numpy

PLACES, ROTATION = 4, 16
# Chance gives places a fifth of a segment's variance, and the most of any 36 % in 10,000 arms of 16 segments (simulated,
# Student's t with 3 degrees of freedom); of calls of 16 µs on an H200 it is 45 to 80 %.
_LEAST_SHARE = 0.45
_FEWEST_SEGMENTS = 16
_ALIGNED = 6  # times that segments are laid over their own median, which nothing moves any more after three or four
_REPEATS = 3  # of finding places without slots and slots without places
_TRIM, _FAR = 0.25, 4.0  # four times the median distance is 2.7 standard deviations
# So few launches, or segments, say no more of their mean than nothing does: on an H200 pairs of place and slot differ by
# 1.3 % where launches scatter by 2.9 %, and beginnings by 0.4 % where segments scatter by 0.7 %.
_AS_GOOD_AS_NONE_OF_LAUNCHES, _AS_GOOD_AS_NONE_OF_SEGMENTS = 5, 3
_ALIKE = 0.1  # of calls that take as long places and slots add as much, and both arms together show it better

# The segments of one arm in one round, each a list of times per launch in µs.
Segments = Sequence[Sequence[float]]


def log_ratios(a_rounds: Sequence[Segments], b_rounds: Sequence[Segments]) -> list[float]:
    """`log_ratio` of each round; where places show in the times of both arms, without what they and the slots add.

    Raises ValueError as that does.
    """
    plain = [log_ratio(a, b) for a, b in zip(a_rounds, b_rounds, strict=True)]
    if not all(_are_whole(rounds) for rounds in (a_rounds, b_rounds)):
        return plain
    import numpy  # a tenth of a second, which a command that judges nobody shall not pay

    arms = [numpy.log([segment for segments in rounds for segment in segments]) for rounds in (a_rounds, b_rounds)]
    (a_kernels, a_share), (b_kernels, b_share) = (_kernels(logs - _slots(logs)) for logs in arms)
    if min(a_share, b_share) < _LEAST_SHARE:
        return plain
    if a_kernels == b_kernels and abs(numpy.median(arms[0]) - numpy.median(arms[1])) < _ALIKE:
        a_logs, b_logs = _cleaned(arms, a_kernels)
    else:
        (a_logs,), (b_logs,) = _cleaned(arms[:1], a_kernels), _cleaned(arms[1:], b_kernels)
    return [b - a for a, b in zip(_by_round(a_logs, a_rounds), _by_round(b_logs, b_rounds))]


def _are_whole(rounds: Sequence[Segments]) -> bool:
    lengths = {len(segment) for segments in rounds for segment in segments}
    return lengths == {ROTATION} and sum(map(len, rounds)) >= _FEWEST_SEGMENTS


def _by_round(logs: numpy.ndarray, rounds: Sequence[Segments]) -> list[float]:
    """What the segments of an arm come to in each round."""
    of_segment = iter(logs.tolist())
    return [sum(next(of_segment) for _ in segments) / len(segments) for segments in rounds]


def _place_of(kernels: int) -> numpy.ndarray:
    """The place of each launch of a segment, counted from where it began, if calls have so many kernels modulo four."""
    import numpy

    index = numpy.arange(ROTATION)
    return (kernels * index + index // PLACES) % PLACES  # one kernel more after every fourth launch


def _kernels(logs: numpy.ndarray) -> tuple[int, float]:
    """How many kernels the calls have, modulo four, and the share of the variance within segments that lies between the
    places that follow from it.
    """
    return max(((kernels, _share(logs, kernels)) for kernels in range(PLACES)), key=lambda fit: fit[1])


def _share(logs: numpy.ndarray, kernels: int) -> float:
    import numpy

    apart = logs - numpy.median(logs, axis=1, keepdims=True)
    far = _FAR * numpy.median(numpy.abs(apart))  # a launch that was interrupted would be most of the variance
    centred = apart.clip(-far, far)
    centred -= centred.mean(axis=1, keepdims=True)
    within = (centred**2).mean()
    place_of = _place_of(kernels)
    between = numpy.mean([centred[:, place_of == place].mean(axis=1) ** 2 for place in range(PLACES)])
    return float(between / within) if within > 0 else 0.0


def _slots(logs: numpy.ndarray) -> numpy.ndarray:
    """What its slot adds to each launch of a segment, in logs: the same in all segments."""
    import numpy

    added = numpy.median(logs - numpy.median(logs, axis=1, keepdims=True), axis=0)
    return added - added.mean()


def _cleaned(arms: Sequence[numpy.ndarray], kernels: int) -> list[numpy.ndarray]:
    """What each segment of each arm counts as, in logs: first without what places and slots add each by itself, then
    without what the one adds in the other, and at last without what its beginning adds to the whole of it.

    The last two need two arms that show them together: what is fitted to one alone takes off of its chance, too, and an
    interval of 99 % would hold 97 to 98 (simulated, 8 to 20 rounds).
    """
    import numpy

    logs = numpy.concatenate(arms)
    place_of, slots = _place_of(kernels), _slots(logs)
    for _ in range(_REPEATS):
        turns, places = _turns(logs - slots, place_of)
        by_turn = numpy.stack([numpy.roll(places, -turn)[place_of] for turn in range(PLACES)])
        slots = _slots(logs - by_turn[turns])
    left = logs - slots - by_turn[turns]
    if len(arms) == 1:
        return [numpy.array([trimmed_mean(segment, _TRIM) for segment in left.tolist()])]
    apart = left - numpy.median(left, axis=1, keepdims=True)
    far = _FAR * numpy.median(numpy.abs(apart))
    for turn in range(PLACES):
        of_turn = turns == turn
        added = apart[of_turn].clip(-far, far).sum(axis=0) / (of_turn.sum() + _AS_GOOD_AS_NONE_OF_LAUNCHES)
        left[of_turn] -= added - added.mean()
    middles = numpy.array([trimmed_mean(segment, _TRIM) for segment in left.tolist()])
    ends = numpy.cumsum([len(arm) for arm in arms])[:-1]
    return numpy.split(middles - _of_beginnings(middles, turns, ends)[turns], ends)


def _of_beginnings(middles: numpy.ndarray, turns: numpy.ndarray, ends: numpy.ndarray) -> numpy.ndarray:
    """What each of the four beginnings adds to a segment, in logs; the segments of each arm lie between two `ends`."""
    import numpy

    added = numpy.zeros(PLACES)
    for _ in range(_REPEATS):
        arms = numpy.split(middles - added[turns], ends)
        apart = numpy.concatenate([arm - trimmed_mean(arm.tolist()) for arm in arms])
        for turn in range(PLACES):
            offsets = apart[turns == turn].tolist()
            if offsets:
                added[turn] += trimmed_mean(offsets) * len(offsets) / (len(offsets) + _AS_GOOD_AS_NONE_OF_SEGMENTS)
    return added - added.mean()


def _turns(logs: numpy.ndarray, place_of: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Where in the rotation each segment began, and what each place adds, in logs: the same four for all segments."""
    import numpy

    seen = numpy.stack([numpy.median(logs[:, place_of == place], axis=1) for place in range(PLACES)], axis=1)
    seen -= seen.mean(axis=1, keepdims=True)
    turned = numpy.stack([numpy.roll(seen, turn, axis=1) for turn in range(PLACES)])
    places = seen[(seen**2).sum(axis=1).argmax()]
    for _ in range(_ALIGNED):
        turns = ((turned - places) ** 2).sum(axis=2).argmin(axis=0)
        places = numpy.median(turned[turns, numpy.arange(len(seen))], axis=0)
        places = places - places.mean()
    return turns, places
