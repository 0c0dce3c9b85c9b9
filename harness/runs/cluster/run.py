"""Runs on a cluster: one problem on all of its devices, or a suite with a problem on each at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import Pipe
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.judge.run import RunRequest, RunResult
from harness.model.errors import HarnessError, NothingToRun
from harness.report.progress import Progress, open_progress
from harness.runs.cluster.link import Link, Seat
from harness.runs.cluster.ray_executors import RayExecutors
from harness.runs.cluster.referees import WARM_PROGRAM
from harness.runs.fleet.fleet import Fleet

_PATIENCE_S = 60.0  # for devices that other jobs have, when they are only asked what they are
_POLL_S = 1.0


def run(
    request: RunRequest, link: Link, progress: Progress, seats: Callable[[], Sequence[Seat]] | None = None,
    stopped: threading.Event | None = None,
) -> list[RunResult]:
    """Judge everything that `request` names on the devices of the cluster, or on those that `seats` names, until it is
    `stopped`; a result for each model among them. Raises HarnessError for what is the user's or the cluster's fault.
    """
    with ExitStack() as stack, RayExecutors(link, seats, wait_s=request.wait_s, stopped=stopped) as places:
        return Fleet(request, places, progress, stack).run()


def identities(link: Link, progress: Progress) -> list[DeviceIdentity]:
    """Return what the cluster's devices are, each kind once and without a UUID: an earlier row of any like it holds."""
    devices: dict[DeviceIdentity, None] = {}
    until, known = time.monotonic() + _PATIENCE_S, set()
    with RayExecutors(link, program=WARM_PROGRAM) as places:
        while (places.open or places.expects_more) and time.monotonic() < until:
            for number, (kind, *payload) in places.hear(_POLL_S):
                if kind == "here":
                    places.send(number, {"device": places.device_inside(number)})
                elif kind == "device":
                    devices[replace(DeviceIdentity(**payload[0]), uuid=None)] = None
                    known.add(number)
                elif number == -1:
                    progress.note(payload[0])
            if known and known >= set(places.open) and not places.pending:
                break
        if places.pending:
            progress.note(f"{places.pending} devices are held by other jobs: rows of a model that only they are of are made again")
        places.end_all(list(places.open))
    if not devices:
        raise HarnessError("no device of the cluster could be opened")
    return list(devices)


class Pool:
    """The devices of a cluster that problems of a suite are judged on, each by one at a time."""

    def __init__(self, link: Link) -> None:
        self._link, self._taken, self._lock = link, set(), threading.Lock()

    @contextmanager
    def seat(self, stopped: threading.Event) -> Iterator[Callable[[], list[Seat]]]:
        """Give what returns the device that one problem is judged on: another where its node is gone.

        It waits for a free device until it is `stopped`; there is none where the cluster has none.
        """
        own: list[Seat] = []

        def seat() -> list[Seat]:
            while not self._take(own) and self._link.seats() and not stopped.wait(_POLL_S):
                pass
            return own

        try:
            yield seat
        finally:
            with self._lock:
                self._taken -= set(own)

    def _take(self, own: list[Seat]) -> bool:
        """Have `own` hold a device that is there and that nobody else has; return whether it does."""
        with self._lock:
            there = self._link.seats()
            if not set(own) & set(there):
                self._taken -= set(own)
                own[:] = [each for each in there if each not in self._taken][:1]
                self._taken |= set(own)
            return bool(own)


class ClusterJudges:
    """Judges problem after problem, each on a device of the `pool`, or without one on all, in a thread of its own; as
    `runs.suite.children.WarmChild` does in a process.
    """

    def __init__(self, link: Link, pool: Pool | None, *, silent: bool) -> None:
        self._link, self._pool, self._silent = link, pool, silent
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._paths: list[str] = []
        self._error: BaseException | None = None

    def ask(self, asked: Mapping[str, Any]) -> None:
        """Have the fields of a `RunRequest` be judged; `pipe` is closed at the other end once that is done."""
        self.pipe, end = Pipe(duplex=False)
        self._paths, self._error = [], None
        self._thread = threading.Thread(target=self._judge, args=(RunRequest(**asked), end), daemon=True)
        self._thread.start()

    def _judge(self, request: RunRequest, end: Any) -> None:
        name = request.problem.name if self._pool else None  # several tell of theirs
        try:
            with ExitStack() as stack:
                seats = stack.enter_context(self._pool.seat(self._stopped)) if self._pool else None
                progress = stack.enter_context(open_progress(silent=self._silent, device=name))
                results = run(request, self._link, progress, seats, self._stopped)
            self._paths = [str(each.csv_path) for each in results]
        except BaseException as error:
            self._error = error
        finally:
            end.close()

    def answer(self) -> list[str]:
        """Return the paths of the CSVs of what was asked last. Raises HarnessError as a run does."""
        self._thread.join()
        if isinstance(self._error, HarnessError) or self._error is None:
            if self._error is not None:
                raise self._error
            return self._paths
        raise HarnessError(f"{type(self._error).__name__}: {' '.join(str(self._error).split())[:500]}")

    def interrupt(self) -> None:
        """End what it does, and wait for that."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Nothing of it is left between two problems."""


def judges_for(link: Link, problems: int, *, silent: bool) -> list[ClusterJudges]:
    """Return what judges the `problems` of a suite: one on each device at a time, or each on all where there are fewer."""
    devices = len(link.seats())
    if not devices:
        raise NothingToRun("the cluster has no device")
    if problems < devices:
        return [ClusterJudges(link, None, silent=silent)]
    pool = Pool(link)
    return [ClusterJudges(link, pool, silent=silent) for _ in range(devices)]
