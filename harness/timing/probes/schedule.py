"""Before which segments of a candidate a probe runs, and which: drawn anew for each worker.

A probe's segment is as long as a timed one, and the same things come before both. So a worker cannot tell the two apart
before they run. Of when the next probe comes it can know only that each kind comes early.
"""

from __future__ import annotations

import enum
import secrets
from collections.abc import Sequence

_DRAWN = secrets.SystemRandom()
# Each kind comes in the first four rounds, which there always are, at one of the two segments of each.
_FIRST_SEGMENTS = 8
_CHANCE_OF = 9


class Probe(enum.Enum):
    """What a probe is to show of a candidate."""

    FLUSH = "whether the cache is made cold, and whether outputs are written to afterwards"
    EARLY_READ = "what a call gains by inputs that lie readable before its window"
    LATE_INPUT = "what a call loses by inputs that are complete only with its window"
    INPUT_VALUE = "what a call loses by inputs with other values"
    KERNELS = "which kernels a call launches"


# Once more right after the last round. Work that was begun early shows in the late ones whatever it does about its times.
_LAST = (Probe.LATE_INPUT, Probe.LATE_INPUT, Probe.EARLY_READ, Probe.FLUSH, Probe.INPUT_VALUE, Probe.KERNELS)


class ProbeSchedule:
    """When a worker is probed: each of `kinds` early on, any by chance now and then, one at the end; never for none."""

    def __init__(self, kinds: Sequence[Probe] = tuple(Probe)) -> None:
        self._kinds = tuple(kinds)
        self._first = dict(zip(_DRAWN.sample(range(_FIRST_SEGMENTS), len(self._kinds)), self._kinds))

    def before(self, segment: int) -> Probe | None:
        """The probe right before the candidate's segment of this number, counted from 0 through the rounds."""
        by_chance = _DRAWN.choice(self._kinds) if self._kinds and secrets.randbelow(_CHANCE_OF) == 0 else None
        return self._first.get(segment, by_chance)

    def last(self) -> Probe | None:
        """The probe when the rounds have ended, in the place of one more segment."""
        return _DRAWN.choice([what for what in _LAST if what in self._kinds]) if self._kinds else None
