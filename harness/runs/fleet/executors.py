"""Where the judges of a run are: processes of this machine, or what stands in their place on other machines.

A run knows them by numbers. What it says to one is an `Assignment`, then a `Delivery` for each entry, "quiet" where it
asked for that, and None at the end; what it hears are tuples whose first word says what they are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from multiprocessing.connection import wait
from typing import Any, Protocol

from harness.build.cache import Cache
from harness.device.identity import DeviceIdentity
from harness.judge.build_pool import Builds, queue_for, sound_of, toolchain_for
from harness.judge.run import RunRequest
from harness.runs.fleet.judge_process import JudgeProcess
from harness.sandbox.sandbox_choice import strongest_sandbox


class Executors(Protocol):
    """The places of one run, each with one device.

    `open` are the numbers of those that can be spoken to. `expects_more` says whether one is on its way without which the
    run could not begin or go on, `expects_model` whether the first of some model is. They `share_cpu` where every "cpu"
    among them is this machine's.
    """

    share_cpu: bool

    @property
    def open(self) -> Collection[int]: ...

    @property
    def expects_more(self) -> bool: ...

    @property
    def expects_model(self) -> bool: ...

    def label(self, number: int) -> str:
        """Return what the place is called in what is told of it."""
        ...

    def device_inside(self, number: int) -> str:
        """Return what the judge there calls its device: "cpu" or "cuda:0"."""
        ...

    def hear(self, timeout_s: float | None) -> Sequence[tuple[int, tuple[Any, ...]]]:
        """Return what was said since, waiting for it up to `timeout_s`.

        The first of a place is ("here",), the last of one that ended ("gone", how). Where a `Delivery` did not arrive with
        its builds, ("unsent", why). Of number -1, for the user, are ("told", text), and ("fault", text) of what could not
        be used.
        """
        ...

    def send(self, number: int, message: Any) -> None:
        """Say something to one; nothing happens where it has ended, which is heard next."""
        ...

    def interrupt(self, number: int) -> None:
        """Have it put its workers away and end, whatever it is doing."""
        ...

    def end(self, number: int) -> None:
        """Wait some seconds for its end, then make one; it is `open` no more."""
        ...

    def end_all(self, numbers: Collection[int]) -> None:
        """End several, side by side."""
        ...

    def builds(self, request: RunRequest, number: int, device: DeviceIdentity) -> Builds:
        """Return the builds of the candidates for devices like that of the place `number`, which are begun at once."""
        ...


class LocalExecutors:
    """Referee processes of this machine; a device that is named twice has a number behind its name."""

    share_cpu = True
    expects_more = expects_model = False

    def __init__(self, judges: Sequence[JudgeProcess]) -> None:
        self._judges = dict(enumerate(judges))
        names = [each.device for each in judges]
        is_clear = len(set(names)) == len(names)
        self._labels = {number: name if is_clear else f"{name}#{number}" for number, name in enumerate(names)}
        self._new = deque(self._judges)

    @property
    def open(self) -> Collection[int]:
        return self._judges.keys()

    def label(self, number: int) -> str:
        return self._labels[number]

    def device_inside(self, number: int) -> str:
        return self._judges[number].device_inside

    def hear(self, timeout_s: float | None) -> Sequence[tuple[int, tuple[Any, ...]]]:
        if self._new:
            return [(self._new.popleft(), ("here",))]
        pipes = {judge.pipe: number for number, judge in self._judges.items()}
        return [(pipes[pipe], self._said(pipes[pipe])) for pipe in wait(list(pipes), timeout_s)]

    def _said(self, number: int) -> tuple[Any, ...]:
        try:
            return self._judges[number].pipe.recv()
        except (EOFError, OSError):
            return "gone", self._judges[number].how_it_ended()

    def send(self, number: int, message: Any) -> None:
        try:
            self._judges[number].pipe.send(message)
        except OSError:
            pass

    def interrupt(self, number: int) -> None:
        self._judges[number].interrupt()

    def end(self, number: int) -> None:
        self._judges.pop(number).end()

    def end_all(self, numbers: Collection[int]) -> None:
        for number in numbers:
            self.end(number)

    def builds(self, request: RunRequest, number: int, device: DeviceIdentity) -> Builds:
        problem = request.problem
        return queue_for(
            problem, sound_of(problem, request.candidates), toolchain_for(device.sm, request.archs), request.settings,
            device, Cache(), strongest_sandbox(),
        )
