"""Candidates that wait for their verdict on a device that stays open: all build side by side, each is judged once it is
built, and more may come at any time. Here is only who comes next, and when the device is taken for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Generic, TypeVar

from harness.device.backend import Backend
from harness.device.lock import DeviceLock
from harness.judge.build_pool import BuildPool, Builds
from harness.judge.work_queue import first_ready
from harness.model.candidate import Candidate
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.report.progress import Progress

Answer = TypeVar("Answer")
Judge = Callable[[Candidate, BuildPool], Answer]  # of a device run whose device, references and control are there


class CandidateQueue(Generic[Answer]):
    """Use it in a `with`, whose end gives up what is still being built. `left` are those without a verdict.

    Without a `judge` one is opened by `open_judge`, before anything is judged. On a CPU all is built before anything is
    timed: compilers would take the very cores. The device is held while the judge is opened and while a candidate is
    judged, and waited for at most `wait_s` (as `device.lock` does). Nothing is built here of another's `builds`.
    """

    def __init__(
        self, problem: Problem, settings: Settings, backend: Backend, progress: Progress, judge: Judge[Answer] | None,
        open_judge: Callable[[BuildPool], Judge[Answer]], wait_s: float | None = None, builds: Builds | None = None,
    ) -> None:
        self._backend, self._progress = backend, progress
        self._judge, self._open_judge = judge, open_judge
        self._lock = DeviceLock.on(backend, progress, wait_s)
        self._build_pool = BuildPool(problem, [], backend, settings, builds=builds, gently=self._lock.is_another_runs)
        self._new: list[Candidate] = []
        self.left: list[Candidate] = []

    def __enter__(self) -> CandidateQueue[Answer]:
        self._build_pool.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._build_pool.__exit__(*error)

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Put these at the end of the queue, in the place of what was read of the same files before."""
        paths = {candidate.path for candidate in candidates}
        self.left = [each for each in self.left if each.path not in paths] + list(candidates)
        self._new = [each for each in self._new if each.path not in paths] + list(candidates)

    def judge_next(self, within_s: float | None = None) -> Answer | None:
        """Judge one: at once what needs no launch, then what is built, in the order in which they came. None if nothing
        is left, or nothing was built for `within_s` seconds. Raises HarnessError for what is the user's or the
        machine's fault; when not even the judge could be opened, nothing is left.
        """
        if not self.left:
            return None
        candidate = next((each for each in self.left if each.fault is not None), None)
        if candidate is None or self._judge is None:
            self._begin()
            candidate = self._built(within_s)
        if candidate is None:
            return None
        # The device may not be free for an hour, and is then waited for anew.
        with self._lock.held() if self._needs_launch(candidate) else nullcontext():
            self.left.remove(candidate)
            return self._judge(candidate, self._build_pool)

    def _begin(self) -> None:
        """Open the judge, and let those that have come be built."""
        if self._backend.limits.is_host:
            self._open()
        if self._new:
            self._build_pool.add(self._new)
            self._new = []
        self._open()

    def _open(self) -> None:
        if self._judge is not None:
            return
        try:
            with self._lock.held():
                self._judge = self._open_judge(self._build_pool)
        except BaseException:
            self.left, self._new = [], []
            raise

    def _built(self, within_s: float | None) -> Candidate | None:
        """The next one that could be judged, waited for at most so long."""
        until = None if within_s is None else time.monotonic() + within_s
        while self.left:
            candidate = first_ready(self.left, self._could_be_judged, self._needs_launch)
            if candidate is not None:
                return candidate
            left_s = None if until is None else until - time.monotonic()
            if left_s is not None and left_s <= 0:
                return None
            building = [each for each in self.left if not self._build_pool.is_ready(each)]
            for each in building:
                self._progress.status(each.name, "building")
            self._build_pool.wait_for_one(building, left_s)
        return None

    def _could_be_judged(self, candidate: Candidate) -> bool:
        """Whether it needs no launch, or one could be timed now."""
        pool = self._build_pool
        return pool.is_settled(candidate) or (
            pool.is_ready(candidate) and (not self._backend.limits.is_host or pool.is_quiet)
        )

    def _needs_launch(self, candidate: Candidate) -> bool:
        return not self._build_pool.is_settled(candidate)
