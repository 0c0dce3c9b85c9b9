"""Who judges what next: whoever is free takes the first that is ready, what can wait comes last, and nothing is lost.

One queue for one judge, for several that come and go, and for those of a cluster. Pure: it knows entries and judges by
what they are called. What a lost judge had in hand is tried `again` once, and last. What it was only promised goes to
another, as it does when a judge is held up for long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

Entry = TypeVar("Entry")

# A judge that waits begins what another was promised only when that one has been at its own for longer than a worker
# takes to start.
_HELD_UP_S = 6.0


@dataclass(frozen=True)
class Job(Generic[Entry]):
    """The entry to judge now, and the one whose worker may be started meanwhile, or None."""

    entry: Entry
    following: Entry | None = None


def never(entry: object) -> bool:
    """Say of no entry that it can wait."""
    return False


def first_ready(
    entries: Iterable[Entry], is_ready: Callable[[Entry], bool], can_wait: Callable[[Entry], bool] = never
) -> Entry | None:
    """Return the first of `entries` that is ready and cannot wait, or else the first that is ready; None without any."""
    ready = filter(is_ready, entries)
    first = next(ready, None)
    if first is None or not can_wait(first):
        return first
    return next((each for each in ready if not can_wait(each)), first)


class WorkQueue(Generic[Entry]):
    """Shares out `entries` in order as they are ready, of the first `reach` or all; each judge's first is `own`."""

    def __init__(self, entries: Iterable[Entry] = (), own: Entry | None = None, reach: int | None = None) -> None:
        self._left = list(entries)
        self._again: list[Entry] = []  # judges were lost over these, perhaps: they come last, and are promised to nobody
        self._own, self._reach = own, reach
        self._has_control = own is None
        self._judges: set[int] = set()
        self._in_hand: dict[int, Entry] = {}
        self._promised: dict[int, Entry] = {}
        self._since_s: dict[int, float] = {}

    def join(self, judge: int) -> None:
        """From now on `judge` takes part."""
        self._judges.add(judge)
        if self._own is not None:
            self._promised[judge] = self._own

    def add(self, entries: Iterable[Entry]) -> None:
        """Put these at the end of what is left."""
        self._left.extend(entries)

    def again(self, entry: Entry) -> None:
        """Have `entry`, over which a judge was lost, be judged by another once nothing else is left."""
        self._again.append(entry)

    @property
    def judges(self) -> Collection[int]:
        return frozenset(self._judges)

    @property
    def left(self) -> Sequence[Entry]:
        """What nobody has begun or was promised."""
        return (*self._left, *self._again)

    @property
    def is_over(self) -> bool:
        """Whether everything was judged but perhaps the control of a judge that found nothing left to do."""
        waited_for = [*self._in_hand.values(), *self._promised.values()]
        return self._has_control and not self.left and all(each == self._own for each in waited_for)

    def in_hand(self, judge: int) -> Entry | None:
        """Return what `judge` is at."""
        return self._in_hand.get(judge)

    def take_back(self, judge: int) -> tuple[Entry, ...]:
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
        self, judge: int, is_ready: Callable[[Entry], bool], now_s: float = 0.0, *,
        can_wait: Callable[[Entry], bool] = never, with_following: bool = True,
    ) -> Job[Entry] | None:
        """What `judge`, which is done with what it had, judges from `now_s`; None while there is nothing for it.

        What `can_wait` comes after all else that is ready, though it was promised; without a following entry where that
        could not be begun ahead.
        """
        self.done(judge)
        if self.is_over:
            return None
        entry = self._promised.pop(judge, None)
        if entry is not None and can_wait(entry):
            self._left.insert(0, entry)
            entry = None
        if entry is None:
            entry = self._take(is_ready, can_wait)
        if entry is None and not self._left:
            entry = self._tried_again(is_ready)
        if entry is None and not self._left:
            entry = self._taken_back(now_s)
        if entry is None:
            return None
        self._in_hand[judge], self._since_s[judge] = entry, now_s
        following = self._take(is_ready, can_wait) if with_following else None
        if following is not None:
            self._promised[judge] = following
        return Job(entry, following)

    def alone(
        self, is_ready: Callable[[Entry], bool], can_wait: Callable[[Entry], bool], wait: Callable[[Sequence[Entry]], None]
    ) -> Iterator[tuple[Entry, Entry | None]]:
        """Each entry with what may follow it, for the only judge; `wait` returns once one of its entries is ready."""
        while True:
            job = self.next(0, is_ready, can_wait=can_wait)
            if job is not None:
                yield job.entry, job.following
            elif self.is_over:
                return
            else:
                wait(self.left)

    def lose(self, judge: int) -> Entry | None:
        """`judge` takes no more part; returns what it had in hand. What it was promised, perhaps the cause, is last."""
        self._judges.discard(judge)
        promised = self._promised.pop(judge, None)
        if promised is not None and promised != self._own:
            self._again.append(promised)
        return self._in_hand.pop(judge, None)

    def _tried_again(self, is_ready: Callable[[Entry], bool]) -> Entry | None:
        entry = first_ready(self._again, is_ready)
        if entry is not None:
            self._again.remove(entry)
        return entry

    def _taken_back(self, now_s: float) -> Entry | None:
        """What was promised to the one that has been held up for longest, if that is long."""
        held_up = [
            each for each, entry in self._promised.items()
            if entry != self._own and each in self._in_hand and now_s - self._since_s[each] > _HELD_UP_S
        ]
        return self._promised.pop(min(held_up, key=lambda each: self._since_s[each])) if held_up else None

    def _take(self, is_ready: Callable[[Entry], bool], can_wait: Callable[[Entry], bool]) -> Entry | None:
        entry = first_ready(islice(self._left, self._reach), is_ready, can_wait)
        if entry is not None:
            self._left.remove(entry)
        return entry
