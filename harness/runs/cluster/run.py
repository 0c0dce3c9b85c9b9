"""Runs on a cluster: one problem on all of its devices, or a suite with a problem on each at a time."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing import Pipe
from typing import Any

from harness.device.identity import DeviceIdentity
from harness.device.lock import LONGEST_WAIT_S
from harness.judge.run import Judging, RunRequest, RunResult
from harness.model.errors import DeviceBusy, HarnessError, NothingToRun
from harness.report.progress import Progress, open_progress
from harness.runs.cluster.link import Link, Seat
from harness.runs.cluster.pool import Lease, OneSeat, Pool
from harness.runs.cluster.ray_executors import RayExecutors
from harness.runs.cluster.referees import WARM_PROGRAM
from harness.runs.fleet.fleet import Fleet

_PATIENCE_S = 60.0  # for more devices that other jobs have, when they are only asked what they are
_POLL_S = 1.0
_BRIEF_S = 10.0  # for a model that others had for as long as one waits: the next problem would hear the same


def run(
    request: RunRequest, link: Link, progress: Progress, lease: Lease | OneSeat | None = None,
    stopped: threading.Event | None = None, wait_s: float | None = None,
) -> list[RunResult]:
    """Judge everything that `request` names on the devices of the cluster, or on that of the `lease`, until it is
    `stopped`; a result for each model among them. `wait_s` is how long other commands are waited for, if not as the
    request says. Raises HarnessError for what is the user's or the cluster's fault.
    """
    wait_s = request.wait_s if wait_s is None else wait_s
    with ExitStack() as stack, RayExecutors(link, lease, wait_s=wait_s, stopped=stopped) as places:
        results = Fleet(request, places, progress, stack).run()
        for model in places.held_models:
            progress.note(
                f"nothing was judged on {model}: other jobs have it. The same command with --resume judges there what is left"
            )
        return results


def run_on(seat: Seat, link: Link) -> Judging:
    """Return what has a request be judged on the one device at `seat`."""
    return lambda request, progress: run(request, link, progress, OneSeat(link, seat))[0]


def identities(link: Link, progress: Progress, wait_s: float | None = None) -> list[DeviceIdentity]:
    """Return what the cluster's devices are, each kind once and without a UUID: an earlier row of any like it holds.

    Raises DeviceBusy where other jobs have all of them for longer than `wait_s`.
    """
    devices: dict[DeviceIdentity, None] = {}
    until, known, why = math.inf, set(), "no device of the cluster could be opened"
    with RayExecutors(link, program=WARM_PROGRAM, wait_s=wait_s) as places:
        while (places.open or places.expects_more) and time.monotonic() < until:
            for number, (kind, *payload) in places.hear(_POLL_S):
                if number == -1:
                    progress.note(payload[0])
                    why = payload[0] if kind == "fault" else why
                elif number not in places.open:
                    continue  # what it said before it was given up
                elif kind == "here":
                    until = min(until, time.monotonic() + _PATIENCE_S)
                    places.send(number, {"device": places.device_inside(number)})
                elif kind == "device":
                    devices[replace(DeviceIdentity(**payload[0]), uuid=None)] = None
                    known.add(number)
                    until = min(until, time.monotonic() + _PATIENCE_S)
                elif kind in ("gone", "failed"):
                    why = f"the judge on {places.label(number)} could not open its device: {payload[-1]}"
                    places.end(number)
            if known and known >= set(places.open) and not places.pending:
                break
        if devices and places.pending:
            progress.note(
                f"{places.pending} devices are held by other jobs: rows of a model that only they are of are made again"
            )
        places.end_all(list(places.open))
    if not devices:
        raise HarnessError(why)
    return list(devices)


class ClusterJudges:
    """Judges problem after problem, each on a device of each model in the `pool`, or without one on all, in threads of its
    own; as `runs.suite.children.WarmChild` does in a process.
    """

    def __init__(self, link: Link, pool: Pool | None, *, silent: bool) -> None:
        self._link, self._pool, self._silent = link, pool, silent
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._paths: list[str] = []
        self.fault: str | None = None  # why a model has no rows where another has some
        self._error: BaseException | None = None

    def ask(self, asked: Mapping[str, Any]) -> None:
        """Have the fields of a `RunRequest` be judged; `pipe` is closed at the other end once that is done."""
        self.pipe, end = Pipe(duplex=False)
        self._paths, self._error, self.fault = [], None, None
        self._thread = threading.Thread(target=self._judge, args=(RunRequest(**asked), end), daemon=True)
        self._thread.start()

    def _judge(self, request: RunRequest, end: Any) -> None:
        try:
            self._paths = [str(each.csv_path) for each in self._results(request)]
        except BaseException as error:
            self._error = error
        finally:
            end.close()

    def _results(self, request: RunRequest) -> list[RunResult]:
        """Judge it on every model. Raises HarnessError where none of them could."""
        if self._pool is None:
            with open_progress(silent=self._silent) as progress:
                results = run(request, self._link, progress, stopped=self._stopped)
            faults = []
        else:
            models = self._pool.models()
            with ThreadPoolExecutor(max(1, len(models))) as threads:
                answers = list(threads.map(lambda each: self._of_model(request, each, len(models) > 1), models))
            results = [each for answer in answers if isinstance(answer, list) for each in answer]
            faults = [each for each in answers if isinstance(each, HarnessError)]
        if not results:
            raise faults[0] if faults else HarnessError("no device of the cluster was left for it")
        self.fault = "; ".join(map(str, faults)) or None
        return results

    def _of_model(self, request: RunRequest, model: str | None, is_named: bool) -> list[RunResult] | HarnessError:
        """Judge it on a device of `model`; what is that model's fault alone is returned, and told."""
        pool, name = self._pool, f"{request.problem.name} on {model}" if is_named else request.problem.name
        with open_progress(silent=self._silent, device=name) as progress:  # several tell of theirs
            while True:
                with pool.lease(model, self._stopped) as lease:
                    try:
                        wait_s = self._wait_s(request, model)
                        results = run(request, self._link, progress, lease, self._stopped, wait_s)
                        pool.held.discard(model)
                        return results
                    except DeviceBusy as fault:
                        if not lease.is_alone:  # it has its turn when another problem of this suite ends
                            continue
                        pool.held.add(model)
                        return _told(progress, fault, model)
                    except HarnessError as fault:
                        return _told(progress, fault, model)

    def _wait_s(self, request: RunRequest, model: str | None) -> float:
        wait_s = LONGEST_WAIT_S if request.wait_s is None else request.wait_s
        return min(wait_s, _BRIEF_S) if model in self._pool.held else wait_s

    def answer(self) -> list[str]:
        """Return the paths of the CSVs of what was asked last.

        Raises HarnessError, and of no narrower kind: what others hold now may be free for the next problem.
        """
        self._thread.join()
        if isinstance(self._error, HarnessError):
            raise HarnessError(str(self._error))
        if self._error is not None:
            raise HarnessError(f"{type(self._error).__name__}: {' '.join(str(self._error).split())[:500]}")
        return self._paths

    def interrupt(self) -> None:
        """End what it does, and wait for that."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Nothing of it is left between two problems."""


def _told(progress: Progress, fault: HarnessError, model: str | None) -> HarnessError:
    progress.note(str(fault))
    return fault if model is None else HarnessError(f"on {model}: {fault}")


def judges_for(link: Link, problems: int, *, silent: bool) -> Callable[[], list[ClusterJudges]]:
    """Return what gives the judges of a suite's `problems`, and later those of devices that have joined: as many as there
    are devices, or one on all of them where there are more devices than problems. Raises NothingToRun without any.
    """
    devices = len(link.seats())
    if not devices:
        raise NothingToRun("the cluster has no device")
    if problems < devices:
        alone = [ClusterJudges(link, None, silent=silent)]
        return lambda: [alone.pop()] if alone else []
    pool, made = Pool(link), 0

    def more() -> list[ClusterJudges]:
        nonlocal made
        new = max(0, len(pool.seats()) - made)
        made += new
        return [ClusterJudges(link, pool, silent=silent) for _ in range(new)]

    return more
