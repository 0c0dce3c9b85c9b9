"""What a builder says of its work, and the two limits that it works under: for its import, and for all of it.

What it compiles counts against the second alone. A candidate that forges these words gains no more than the time that a
build may take twice.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

# Before each import of the candidate, and where its process begins and ends to wait for compilers.
IMPORTS, COMPILES, COMPILED = ({"stage": name} for name in ("imports", "compiles", "compiled"))
# As something is built again without the stand-in for PyTorch's headers: what was tried in vain costs it no time.
BEGINS_AGAIN = {"begins_again": True}
_MOST_WORDS = 1000


class BuildLimits:
    """Two deadlines, by the seconds that `now` counts."""

    def __init__(self, build_s: float, import_s: float, now: Callable[[], float]) -> None:
        self._build_s, self._import_s, self._now = build_s, import_s, now
        self._build_ends = now() + build_s
        self._import_left_s, self._import_began = import_s, math.inf  # infinite where nothing is being imported
        self._words, self._has_imported, self._has_begun_again = 0, False, False

    @property
    def left_s(self) -> float:
        """For how long it may go on without a word."""
        return max(0.0, min(self._build_ends - self._now(), self._import_ends - self._now()))

    @property
    def is_import_over(self) -> bool:
        """Whether it was its import that took too long."""
        return self._import_ends < self._build_ends

    @property
    def _import_ends(self) -> float:
        return self._import_began + self._import_left_s

    def heed(self, frame: Mapping[str, Any]) -> bool:
        """Whether `frame` is one of these words, and no answer."""
        now = self._now()
        is_known = frame in (IMPORTS, COMPILES, COMPILED) or (frame == BEGINS_AGAIN and not self._has_begun_again)
        if not is_known or self._words >= _MOST_WORDS:
            return False
        self._words += 1
        if frame == IMPORTS:
            self._has_imported, self._import_left_s, self._import_began = True, self._import_s, now
        elif frame == COMPILES and self._import_began < math.inf:
            self._import_left_s, self._import_began = self._import_ends - now, math.inf
        elif frame == COMPILED and self._has_imported and self._import_began == math.inf:
            self._import_began = now
        elif frame == BEGINS_AGAIN:
            self._has_begun_again, self._build_ends = True, now + self._build_s
        return True


class Speaker:
    """Says these words for a builder, of whose candidate several threads may compile at once."""

    def __init__(self, send: Callable[[Mapping[str, Any]], None]) -> None:
        self._send, self._lock = send, threading.Lock()
        self._compiling, self._has_begun_again = 0, False

    def imports(self) -> None:
        self.ask(IMPORTS)

    def ask(self, frame: Mapping[str, Any]) -> None:
        """Say what is to be compiled, in the middle of no other word."""
        with self._lock:
            self._send(frame)

    def answer(self, frame: Mapping[str, Any]) -> None:
        """Say the last word: a thread of the candidate's that still compiles says nothing in the middle of it, or after."""
        with self._lock:
            self._send(frame)
            self._send = lambda _: None

    @contextmanager
    def compiling(self) -> Iterator[None]:
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def begin_again(self) -> None:
        with self._lock:
            if not self._has_begun_again:
                self._has_begun_again = True
                self._send(BEGINS_AGAIN)

    def _count(self, change: int) -> None:
        with self._lock:
            before, self._compiling = self._compiling, self._compiling + change
            if 0 in (before, self._compiling):
                self._send(COMPILES if change > 0 else COMPILED)
