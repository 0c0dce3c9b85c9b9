"""Who judges what next, among judges that come and go: whoever is free takes the next entry that is built.

Pure: it knows entries and judges by their numbers. What a lost judge had in hand is tried `again` once, and last. What it
was only promised goes to another, as it does when a judge is held up for long.
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
        self._again: list[int] = []  # judges were lost over these, perhaps: they come last, and are promised to nobody
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

    def again(self, entry: int) -> None:
        """Have `entry`, over which a judge was lost, be judged by another once nothing else is left."""
        self._again.append(entry)

    @property
    def judges(self) -> Collection[int]:
        return frozenset(self._judges)

    @property
    def left(self) -> Sequence[int]:
        """What nobody has begun or was promised."""
        return (*self._left, *self._again)

    @property
    def is_over(self) -> bool:
        """Whether everything was judged but perhaps the control of a judge that found nothing left to do."""
        waited_for = [*self._in_hand.values(), *self._promised.values()]
        return self._has_control and not self.left and all(each == self._own for each in waited_for)

    def in_hand(self, judge: int) -> int | None:
        """Return what `judge` is at."""
        return self._in_hand.get(judge)

    def take_back(self, judge: int) -> tuple[int, ...]:
        """Return what `judge` had in hand and was promised, neither of which reached it. Its control comes to it next."""
        in_hand, promised = self._in_hand.pop(judge, None), self._promised.pop(judge, None)
        if in_hand == self._own and in_hand is not None:
            self._promised[judge] = in_hand
        return tuple(each for each in (in_hand, promised) if each is not None)

    def done(self, judge: int) -> None:
        """`judge` has judged what it had in hand, and may be lost without costing it."""
        if self._in_hand.pop(judge, None) == self._own:
            self._has_control = True

    def next(
        self, judge: int, is_ready: Callable[[int], bool], now_s: float = 0.0, *,
        suits: Callable[[int], bool] = lambda entry: True, with_following: bool = True,
    ) -> Job | None:
        """What `judge`, which is done with what it had, judges from `now_s`; None while there is nothing for it.

        Of what is ready the first that `suits` it, or else the first; without a following entry where that could not be
        begun ahead.
        """
        self.done(judge)
        if self.is_over:
            return None
        entry = self._promised.pop(judge, None)
        if entry is None:
            entry = self._take(is_ready, suits)
        if entry is None and not self._left:
            entry = self._tried_again(is_ready)
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
        """`judge` takes no more part. Returns the entry that it had in hand, which nobody gets again but by `again`.

        Its promised entry's worker may be what ended it: that entry is promised to nobody else.
        """
        self._judges.discard(judge)
        promised = self._promised.pop(judge, None)
        if promised is not None and promised != self._own:
            self._again.append(promised)
        return self._in_hand.pop(judge, None)

    def _tried_again(self, is_ready: Callable[[int], bool]) -> int | None:
        entry = next(filter(is_ready, self._again), None)
        if entry is not None:
            self._again.remove(entry)
        return entry

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
