"""Building many candidates at once: each in its own untrusted child, as many at a time as cores and memory allow."""

from __future__ import annotations

import os
import secrets
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.build import outcome
from harness.build.builder_launcher import Builders
from harness.build.cache import ENVIRONMENT_VARIABLE, Cache, digest_of, digests_of, sha256_of, sources_untold
from harness.build.cache_space import Lease, limit_bytes, make_room
from harness.build.device_answers import DeviceFacts
from harness.build.late_requests import asked_before
from harness.build.machine_faults import without_room
from harness.build.product import Build
from harness.build.toolchain import Toolchain
from harness.model.candidate import Candidate
from harness.model.settings import Settings
from harness.model.verdict import ReasonCode, Status, Verdict, of_own_defect, traceback_of
from harness.sandbox.descriptors import allow_descriptors
from harness.sandbox.limits import default_limits
from harness.sandbox.sandbox_choice import Sandbox
from harness.sandbox.spawn import Child

_BYTES_PER_BUILDER = 3 << 30
# Open files of a run, and of each child that builds: pipes to it, its log, its lifeline, with room to spare.
_FILES, _FILES_EACH = 512, 16


@dataclass(eq=False)
class _UnderWay:
    """A candidate's build that was begun, or waits for a builder."""

    candidate: Candidate
    key: str
    build: Future[Build] = field(init=False)
    child: Child | None = None
    is_given_up: bool = False


class BuildQueue:
    """Builds `candidates` in parallel from the moment it is made, and those added. `close` it, or use it in a `with`.

    `problem_init` says how `ModelNew` is constructed, and `device` for which GPU (`Builders`). `gently` takes half as
    many cores, behind all other sessions: with a compiler on every one, the steps of a run that is timing took 390 µs
    more. Several queues may share a `pool` of threads; its size is then how many builds there are at a time. While it
    `is_paused` nothing more is begun.
    """

    def __init__(
        self, candidates: Sequence[Candidate], toolchain: Toolchain, cache: Cache, settings: Settings,
        sandbox: Sandbox | None = None, problem_init: Mapping[str, Any] | None = None, gently: bool = False,
        device: DeviceFacts | None = None, pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._toolchain, self._cache, self._settings = toolchain, cache, settings
        self._builders = Builders(
            toolchain, settings.build_timeout_s, settings.load_timeout_s, sandbox, dict(problem_init or {}), device,
            [cache.root], gently,
        )
        self._init_digest = _digest_of_init(self._builders.init)
        self._limit_bytes, self._lease = limit_bytes(), Lease(cache.root)
        self._state = threading.Condition()  # of each build, and of these two
        self._is_paused, self._running = False, 0
        self._done: dict[Candidate, Build] = {}
        self._coming: dict[Candidate, _UnderWay] = {}
        self._most = max(1, builders_at_once() // (2 if gently else 1))
        self._own_pool = None if pool else ThreadPoolExecutor(self._most, thread_name_prefix="builder")
        self._pool = pool or self._own_pool
        self.add(candidates)

    def __enter__(self) -> BuildQueue:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Build these beside what is being built; one that was given before is looked at anew."""
        for candidate in candidates:
            self.give_up(candidate)
            known = outcome.before_building(candidate, self._toolchain) or self._kept(candidate)
            if known is not None:
                self._done[candidate] = known
        waiting = [each for each in candidates if each not in self._done]
        builders = max(1, min(len(waiting) + self.waiting, self._most))
        allow_descriptors(_FILES + _FILES_EACH * builders)
        # One candidate has a C++ and a CUDA half, or is compiled for each architecture; more jobs than that never help.
        self._jobs = max(1, min(max(2, len(self._toolchain.sms)), (os.cpu_count() or 1) // builders))
        for candidate in waiting:
            # Its key here, not in its thread: where two threads are in `ast` at once Python 3.11 may raise SystemError.
            self._coming[candidate] = under_way = _UnderWay(candidate, self._cache.key(candidate, self._toolchain))
            under_way.build = self._pool.submit(self._build, under_way)

    def give_up(self, candidate: Candidate) -> None:
        """End the build of `candidate` wherever it is, and forget it; nothing happens for one that was not given."""
        self._done.pop(candidate, None)
        under_way = self._coming.pop(candidate, None)
        if under_way is not None:
            self._end(under_way)

    def _end(self, under_way: _UnderWay) -> None:
        under_way.build.cancel()
        with self._state:
            under_way.is_given_up = True
            child = under_way.child
            self._state.notify_all()
        if child is not None:
            child.kill()

    @property
    def waiting(self) -> int:
        """How many are not built yet."""
        return sum(not each.build.done() for each in self._coming.values())

    def result(self, candidate: Candidate) -> Build:
        """Return the build of `candidate` as soon as it is there. Raises KeyError for one that was not given."""
        return self._done[candidate] if candidate in self._done else self._coming[candidate].build.result()

    def is_ready(self, candidate: Candidate) -> bool:
        """Whether `result` would answer at once."""
        return candidate in self._done or self._coming[candidate].build.done()

    def wait_for_one(self, candidates: Sequence[Candidate], timeout_s: float | None = None) -> None:
        """Return when `result` would answer at once for at least one of `candidates`, or after `timeout_s`."""
        if not any(map(self.is_ready, candidates)):
            wait([self._coming[each].build for each in candidates], timeout_s, FIRST_COMPLETED)

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    @is_paused.setter
    def is_paused(self, value: bool) -> None:
        with self._state:
            self._is_paused = value
            self._state.notify_all()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being built any more, or for now."""
        return not (self._running if self._is_paused else self.waiting)

    def wait_until_idle(self) -> None:
        """Return when nothing is being built any more, or for now."""
        if not self._is_paused:
            wait([each.build for each in self._coming.values()])
        with self._state:
            self._state.wait_for(lambda: not self._running)

    def close(self) -> None:
        """Give up what is not built yet and end every child."""
        for under_way in list(self._coming.values()):
            self._end(under_way)
        if self._own_pool is not None:
            self._own_pool.shutdown(wait=True)
        self.wait_until_idle()
        self._lease.end()
        make_room(self._cache.root, self._limit_bytes)

    def _kept(self, candidate: Candidate, key: str | None = None) -> Build | None:
        """The kept build of `candidate`, whose `key` may be known."""
        key, place = key or self._cache.key(candidate, self._toolchain), candidate.path.resolve().parent
        kept = self._cache.lookup(key, place, self._init_digest)
        return None if kept is None else asked_before(kept, self._cache, key, place)

    def _build(self, under_way: _UnderWay) -> Build:
        with self._state:
            self._state.wait_for(lambda: under_way.is_given_up or not self._is_paused)
            self._running += 1
        try:
            return self._build_or_raise(under_way)
        except OSError as error:  # the machine's fault where nobody can write there
            root = self._cache.root
            reason = f"could not be built in {root} ({error}); name another folder in {ENVIRONMENT_VARIABLE}"
            fault = without_room([root, Path(tempfile.gettempdir())])
            return Build(fault or Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, reason))
        except Exception as error:
            # Ours, or what a hostile builder left got past the checks on it: its own row pays, not the run.
            return Build(of_own_defect(error), log=traceback_of(error))
        finally:
            with self._state:
                self._running -= 1
                self._state.notify_all()

    def _build_or_raise(self, under_way: _UnderWay) -> Build:
        candidate, key, limit_s = under_way.candidate, under_way.key, self._settings.build_timeout_s
        place = candidate.path.resolve().parent
        with self._cache.lock(key, limit_s, lambda: under_way.is_given_up):
            kept = self._kept(candidate, key)
            if kept is not None:
                return kept
            with self._cache.staging() as private:
                began, began_at = time.monotonic(), time.time()
                ending = self._builders.run(candidate, private, self._jobs, lambda child: self._begun(under_way, child))
                with self._state:
                    under_way.child = None
                if not candidate.is_as_read:  # the key says one text, and perhaps another was built
                    return Build(outcome.saved_meanwhile(candidate))
                seconds = time.monotonic() - began
                build, files = outcome.judge(ending, candidate, self._toolchain, private, seconds, limit_s)
                digests = digests_of({*map(Path, files), *sources_untold(candidate)}, began_at)
                build = self._cache.store(key, build, digests, place, self._init_digest)
                return asked_before(build, self._cache, key, place)

    def _begun(self, under_way: _UnderWay, child: Child) -> None:
        with self._state:
            under_way.child = child
        if under_way.is_given_up:
            child.kill()


def _digest_of_init(init: Mapping[str, Any]) -> str:
    """What stands for the arguments of `ModelNew`: the reference's text, and the sizes that it is given."""
    reference = init.get("reference")
    try:
        text = sha256_of(Path(reference)) if reference else ""
    except OSError:
        text = secrets.token_hex(8)  # nobody knows
    return digest_of([text, init.get("sizes", [])])[:16]


def builders_at_once() -> int:
    """One builder for each core this process may use, and a second on one core, as long as there are 3 GB of memory
    for each: a candidate that hangs while it is built keeps the others waiting only where there is no second.
    """
    limit = default_limits().memory_bytes
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(max(2, cores), (limit or _BYTES_PER_BUILDER) // _BYTES_PER_BUILDER))
