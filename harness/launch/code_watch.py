"""Whose code the cores of a CPU's worker were at in its timed calls: the system's looks, cut to the windows of launches."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from harness.attribution.code_regions import CodeSeen, Window, code_seen
from harness.device.core_watch import OFTEN_NS, RARELY_NS, CoreWatch
from harness.launch.conversation import Launches
from harness.reference.reference_model import Reference


class CodeWatch:
    """Looks at no process until it `begin`s. `close` it."""

    def __init__(self) -> None:
        self._watch: CoreWatch | None = None
        self._windows: list[tuple[Reference | None, Window]] = []  # of whose calls

    def begin(self, pids: Collection[int]) -> None:
        """Look at these processes, and at what they begin, from now on."""
        self._watch = CoreWatch(pids)

    def during(self, *, is_probe: bool) -> AbstractContextManager[None]:
        """Entered while launches are made: those of a probe are looked at often."""
        return self._watch.often() if is_probe and self._watch is not None else nullcontext()

    def note(self, reference: Reference | None, made: Launches, *, is_probe: bool) -> None:
        """Keep when the launches `made` at the sizes of `reference` were timed."""
        if self._watch is None:
            return
        self._watch.check() if is_probe else self._watch.read()
        period_ns = OFTEN_NS if is_probe else RARELY_NS
        self._windows += [
            (reference, Window(each.opened_ns, each.opened_ns + round(each.time_us * 1e3), period_ns))
            for each in made.launches if each.opened_ns is not None
        ]

    def seen(self, reference: Reference, own_files: Collection[Path]) -> tuple[CodeSeen | None, str | None]:
        """Whose code it was in the calls at the sizes of `reference`; a sentence where that was not looked at."""
        if self._watch is None:
            return None, "its device is none"
        self._watch.check()
        windows = [window for of, window in self._windows if of is reference]
        seen = code_seen(self._watch.looks, self._watch.mapped, windows, [str(each) for each in own_files])
        return replace(seen, lost=self._watch.lost, unmet=tuple(self._watch.unmet)), self._watch.fault

    def read(self) -> None:
        """Take over what was noted, while a call lasts, so that there is room for more."""
        if self._watch is not None:
            self._watch.read()

    def close(self) -> None:
        """End all looks."""
        if self._watch is not None:
            self._watch.close()
