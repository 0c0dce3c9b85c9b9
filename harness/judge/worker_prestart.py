"""Workers that are started before their turn, while another entry is judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from harness.judge.build_pool import BuildPool
from harness.launch.worker_launcher import WorkerLauncher
from harness.model.baselines import Baseline
from harness.model.candidate import Candidate

Entry = Baseline | Candidate
_MOST_WAITING = 2


class WorkerPrestart:
    """The workers on their way for one device; none starts ahead where it `is_idle`, as on a CPU that is timing."""

    def __init__(self, is_idle: bool) -> None:
        self._is_idle = is_idle
        self._started: list[tuple[Entry, WorkerLauncher]] = []

    def start(self, entry: Entry | None, build_pool: BuildPool, *, open_device: bool = False) -> None:
        """Start the worker of `entry`, if there is one, `build_pool` has built it and nothing is wrong with it.

        With `open_device` it also opens the device, which `wait_until_open` waits for.
        """
        if entry is None or self._is_idle or not build_pool.is_ready(entry):
            return
        started = next((starter for waiting, starter in self._started if waiting is entry), None)
        if started is not None:
            started.prestart(open_device=open_device)
            return
        if isinstance(entry, Candidate) and build_pool.build_of(entry).verdict is not None:
            return
        starter = build_pool.prepared(entry)[1]
        self._started.append((entry, starter))  # first: what interrupts the start finds it here
        starter.prestart(open_device=open_device)

    def start_slow(self, entries: Iterable[Entry], build_pool: BuildPool) -> None:
        """Start those among `entries` that take seconds of imports, long before their turn."""
        for entry in filter(is_slow_to_start, entries):
            self.start(entry, build_pool)

    def wait_until_open(self) -> list[int]:
        """The pids of workers that wait with the device open, once those asked to have it: until then it is busy."""
        pids = [starter.wait_until_open() for _, starter in self._started]
        return [pid for pid in pids if pid is not None]

    def open_count(self) -> int:
        """How many have opened the device or are about to."""
        return sum(starter.is_opening for _, starter in self._started)

    def take(self, entry: Entry) -> WorkerLauncher | None:
        """What was started for `entry`, now its caller's. One opened for no turn ends, and the oldest of many."""
        taken = next((starter for waiting, starter in self._started if waiting is entry), None)
        others = [each for each in self._started if each[1] is not taken]
        slow = [each for each in others if is_slow_to_start(each[0])]
        quick = [each for each in others if not is_slow_to_start(each[0]) and not each[1].is_opening]
        kept = slow + quick[-_MOST_WAITING:]
        self.drop(but=[taken, *(starter for _, starter in kept)])
        self._started = kept
        return taken

    def drop(self, but: Collection[WorkerLauncher | None] = ()) -> None:
        """End every worker that still waits, `but` these."""
        for _, starter in self._started:
            if starter not in but:
                starter.close()
        self._started = []


def is_slow_to_start(entry: Entry) -> bool:
    """Whether the process of `entry` imports for seconds before it can begin."""
    return isinstance(entry, Baseline) and bool(entry.imports)
