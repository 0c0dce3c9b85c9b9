"""Who judges what next, among judges that come and go: whoever is free takes the next entry that is built.

Pure: it knows entries and judges by their numbers. An entry is given out once; what a judge was only promised goes
to another when it is lost, or held up for long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

# A judge that waits begins what another was promised only when that one has been at its own for longer than a worker
# takes to start.
_HELD_UP_S = 6.0
# Of what is left so many are looked at for one that is ready: builds are begun in this order.
_LOOKED_AT = 256


@dataclass(frozen=True)
class Job:
    """The entry to judge now, and the one whose worker may be started meanwhile, or None."""

    entry: int
    following: int | None = None


class Sharing:
    """Shares out `entries`, in this order as far as they are ready. Every judge judges `own` first: its control."""

    def __init__(self, entries: Sequence[int], own: int | None = None) -> None:
        self._left = list(entries)
        self._own = own
        self._has_control = own is None
        self._judges: set[int] = set()
        self._in_hand: dict[int, int] = {}
        self._promised: dict[int, int] = {}
        self._since_s: dict[int, float] = {}

    def join(self, judge: int) -> None:
        """From now on `judge` takes part."""
        self._judges.add(judge)
        if self._own is not None:
            self._promised[judge] = self._own

    def add(self, entries: Iterable[int]) -> None:
        """Put these at the end of what is left."""
        self._left.extend(entries)

    @property
    def judges(self) -> Collection[int]:
        return frozenset(self._judges)

    @property
    def left(self) -> Sequence[int]:
        """What nobody has begun or was promised."""
        return tuple(self._left)

    @property
    def is_over(self) -> bool:
        """Whether everything was judged but perhaps the control of a judge that found nothing left to do."""
        waited_for = [*self._in_hand.values(), *self._promised.values()]
        return self._has_control and not self._left and all(each == self._own for each in waited_for)

    def next(
        self, judge: int, is_ready: Callable[[int], bool], now_s: float = 0.0, *,
        suits: Callable[[int], bool] = lambda entry: True, with_following: bool = True,
    ) -> Job | None:
        """What `judge`, which is done with what it had, judges from `now_s`; None while there is nothing for it.

        Of what is ready the first that `suits` it, or else the first; without a following entry where that could not be
        begun ahead.
        """
        if self._in_hand.pop(judge, None) == self._own:
            self._has_control = True
        if self.is_over:
            return None
        entry = self._promised.pop(judge, None)
        if entry is None:
            entry = self._take(is_ready, suits)
        if entry is None and not self._left:
            entry = self._taken_back(now_s)
        if entry is None:
            return None
        self._in_hand[judge], self._since_s[judge] = entry, now_s
        following = self._take(is_ready, suits) if with_following else None
        if following is not None:
            self._promised[judge] = following
        return Job(entry, following)

    def lose(self, judge: int) -> int | None:
        """`judge` takes no more part. Returns the entry that it had in hand, which nobody gets again."""
        self._judges.discard(judge)
        promised = self._promised.pop(judge, None)
        if promised is not None and promised != self._own:
            self._left.insert(0, promised)
        return self._in_hand.pop(judge, None)

    def _taken_back(self, now_s: float) -> int | None:
        """What was promised to the one that has been held up for longest, if that is long."""
        held_up = [
            each for each, entry in self._promised.items()
            if entry != self._own and each in self._in_hand and now_s - self._since_s[each] > _HELD_UP_S
        ]
        return self._promised.pop(min(held_up, key=lambda each: self._since_s[each])) if held_up else None

    def _take(self, is_ready: Callable[[int], bool], suits: Callable[[int], bool]) -> int | None:
        entry = None
        for each in islice(self._left, _LOOKED_AT):
            if is_ready(each):
                entry = each if entry is None else entry
                if suits(each):
                    entry = each
                    break
        if entry is not None:
            self._left.remove(entry)
        return entry
