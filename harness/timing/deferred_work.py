"""What the judge has to do between segments, kept until a worker is busy making a queue of launches.

A worker takes milliseconds for that, of which a gated queue runs nothing; the judge would only wait.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from harness.launch.failures import Failed

_Made = TypeVar("_Made")


class DeferredWork:
    """Tasks in order; `synchronize` waits for a device on which they may have queued work."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        self._synchronize = synchronize
        self._tasks: list[Callable[[], None]] = []
        self._error: Exception | None = None

    def add(self, task: Callable[[], None]) -> None:
        self._tasks.append(task)

    def work(self) -> None:
        """Do all of it. What a task raises is kept for `settle`, since it is no fault of the queue under way."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            if self._error is None:
                try:
                    task()
                except Exception as error:
                    self._error = error
        if tasks:
            self._synchronize()

    def settling(self, launch: Callable[[], _Made]) -> _Made:
        """What `launch` returns. What was found wrong meanwhile comes before what that launch ends with."""
        try:
            return launch()
        except Failed as later:
            try:
                self.settle()
            except Failed as earlier:
                raise earlier from later
            raise

    def settle(self) -> None:
        """Do what is left. Raises what a task raised."""
        self.work()
        if self._error is not None:
            error, self._error = self._error, None
            try:
                raise error
            finally:
                del error  # with its frames, and what they hold of a device's memory, when it has been dealt with
