"""Which entry is judged next: the first that is ready, so that the device does not wait for a compiler while it could
work.

Pure: entries are whatever the caller judges. What is slow to get ready of itself (torch.compile imports a compiler of
its own) goes into the gaps, or last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Entry = TypeVar("Entry")


def as_they_get_ready(
    entries: Sequence[Entry], is_ready: Callable[[Entry], bool], is_slow: Callable[[Entry], bool],
    wait: Callable[[Sequence[Entry]], None],
) -> Iterator[tuple[Entry, Entry | None]]:
    """Each of `entries` with what is likely to follow it, in the given order as far as they are ready when asked for.

    `wait` returns when at least one of the entries that it is given has become ready.
    """
    left, promised = list(entries), None

    def ready() -> list[Entry]:
        """What could begin now, the slow ones at the end."""
        found = [each for each in left if is_ready(each)]
        return [each for each in found if not is_slow(each)] + [each for each in found if is_slow(each)]

    while left:
        if promised is None or is_slow(promised):
            if not ready():
                wait(list(left))
            promised = ready()[0]
        entry = promised
        left.remove(entry)
        promised = next(iter(ready()), None)
        yield entry, promised
