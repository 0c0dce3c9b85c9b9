"""A run's turn on a device: one job times there at a time, by a file lock for each GPU's UUID and one for the CPU.

Who finds another run timing is told so, and what is waited for; what may be done meanwhile is the caller's to know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harness.device.bench import Bench
from harness.device.choose import device_lock
from harness.errors import HarnessError
from harness.report.progress import Progress

_LONGEST_S = 3600.0
_LOOK_S = 0.25


class Turn:
    """The turn of one run on the device `name`; use it in a `with`, whose end gives the device back.

    It is taken as the `with` begins, if no other run has it; else `is_awaited`, and `wait` returns once it is taken.
    """

    def __init__(
        self, uuid: str | None, name: str, progress: Progress, settle: Callable[[], None] = lambda: None
    ) -> None:
        """`settle` is called when the device was waited for: what was seen of it before is the other run's."""
        self._lock, self._name, self._progress, self._settle = device_lock(uuid), name, progress, settle

    @classmethod
    def on(cls, bench: Bench, progress: Progress) -> Turn:
        """The turn on the device of `bench`."""
        uuid = bench.identity.uuid
        return cls(uuid, f"{bench.identity.name} ({uuid[:12]})" if uuid else "this CPU", progress, bench.settle)

    def __enter__(self) -> Turn:
        self._lock.take()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def is_awaited(self) -> bool:
        """Whether another run has the device."""
        return not self._lock.is_taken

    def wait(self, is_built: Callable[[], bool] | None = None) -> None:
        """Return when the device is this run's own, at once if it is already. Raises HarnessError after an hour.

        With `is_built` candidates are built meanwhile; it says whether all are.
        """
        if not self.is_awaited:
            return
        is_built = None if is_built is None or is_built() else is_built
        meanwhile = ", and building meanwhile" if is_built else ""
        self._progress.note(f"{self._held_by()} is timing on {self._name}: waiting for it to end{meanwhile}")
        until = time.monotonic() + _LONGEST_S
        while not self._lock.take(_LOOK_S):
            if is_built is not None and is_built():
                self._progress.note(f"all candidates are built; still waiting for the other run on {self._name}")
                is_built = None
            if time.monotonic() > until:
                raise HarnessError(f"{self._held_by()} has held {self._name} for an hour; try again later")
        self._settle()

    def _held_by(self) -> str:
        """Who has the device, as far as that can be told."""
        number = self._lock.holder()
        return "another run" if number is None else f"another run (process {number})"


@contextmanager
def alone_on(bench: Bench, progress: Progress) -> Iterator[None]:
    """Hold the device, with a word to the user when another run has it. Raises HarnessError after an hour."""
    with Turn.on(bench, progress) as turn:
        turn.wait()
        yield
