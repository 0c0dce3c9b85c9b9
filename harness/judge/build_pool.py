"""What lasts as long as a run: the builds, the sandbox, the caches, and the files that the baselines are written to."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from harness.build.builder_launcher import Builders, stand_in_gpu_of
from harness.build.cache import Cache
from harness.build.device_answers import DeviceFacts
from harness.build.late_requests import build_asked
from harness.build.product import Build
from harness.build.queue import BuildQueue
from harness.build.toolchain import Toolchain, arch_of, find_toolchain
from harness.device.backend import Backend
from harness.device.identity import DeviceIdentity
from harness.judge.judgement import Prepared
from harness.launch.worker_launcher import WorkerLauncher
from harness.model.baselines import BASELINES, Baseline, write_baseline
from harness.model.candidate import Candidate
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.verdict import Verdict
from harness.results.assembly import baseline_hash
from harness.sandbox.leftovers import remove_tree
from harness.sandbox.sandbox_choice import Sandbox, strongest_sandbox

# Of the compilers for what one candidate asks for as it runs, while its device waits.
_JOBS_OF_ASKED = 2


class Builds(Protocol):
    """Where builds come from: a queue of this process's own, or that of a parent."""

    is_idle: bool
    is_paused: bool
    waiting: int

    def wait_until_idle(self) -> None: ...
    def result(self, candidate: Candidate) -> Build: ...
    def is_ready(self, candidate: Candidate) -> bool: ...
    def add(self, candidates: Sequence[Candidate]) -> None: ...
    def give_up(self, candidate: Candidate) -> None: ...
    def wait_for_one(self, candidates: Sequence[Candidate], timeout_s: float | None = None) -> None: ...
    def close(self) -> None: ...


class BuildPool:
    """Builds `candidates` at once, `gently` on half the cores, or takes them from `builds`; use it in a `with`."""

    def __init__(
        self, problem: Problem, candidates: Sequence[Candidate], backend: Backend, settings: Settings,
        archs: Sequence[str] = (), builds: Builds | None = None, gently: bool = False,
    ) -> None:
        self._problem, self._backend = problem, backend
        self._sizes: Mapping[str, int] = problem.timed_sizes(backend.kind)
        self._toolchain = toolchain_for(backend.identity.sm, archs)
        self._cache = Cache()
        self._folder = Path(tempfile.mkdtemp(prefix="kernel-referee-"))
        self._sound = sound_of(problem, candidates)
        self.sandbox = strongest_sandbox()
        self._builds: Builds = builds or queue_for(
            problem, self._sound, self._toolchain, settings, backend.identity, self._cache, self.sandbox, gently
        )
        self._builders = Builders(
            self._toolchain, settings.build_timeout_s, settings.load_timeout_s, self.sandbox, _init_of(problem, backend.kind),
            facts_of(backend.identity), [self._cache.root],
        )
        self._hidden = [self._cache.root, problem.reference_path.resolve().parent, *problem.candidate_folders]
        self._extended: dict[Candidate, Build] = {}  # builds to which came what was asked for at run time

    def __enter__(self) -> BuildPool:
        return self

    def __exit__(self, *_: object) -> None:
        with undisturbed():
            self._builds.close()
            remove_tree(self._folder)

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Build these too; what was read of the same files before is given up."""
        paths = {candidate.path for candidate in candidates}
        for earlier in self._sound:
            if earlier.path in paths:
                self._builds.give_up(earlier)
        sound = [candidate for candidate in candidates if candidate.fault is None]
        self._sound = [each for each in self._sound if each.path not in paths] + sound
        self._builds.add(sound)

    def wait_for_builds(self, tell: Callable[[str], None]) -> None:
        """Wait until all candidates are built, telling of each that had to be waited for."""
        for position, candidate in enumerate(self._sound, 1):
            if not self._builds.is_ready(candidate):
                tell(f"building {candidate.name} ({position} of {len(self._sound)})")
            self._builds.result(candidate)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is being built any more."""
        return self._builds.is_idle

    def wait_until_quiet(self) -> None:
        """Return when nothing is being built any more."""
        self._builds.wait_until_idle()

    def pause(self) -> None:
        """Have no build begin until `go_on`, and return when nothing is being built."""
        self._builds.is_paused = True
        self._builds.wait_until_idle()

    def go_on(self) -> None:
        """Have builds begin again."""
        self._builds.is_paused = False

    def is_ready(self, entry: Baseline | Candidate) -> bool:
        """Whether an entry can be made of `entry` without waiting."""
        return isinstance(entry, Baseline) or (entry.fault is None and self._builds.is_ready(entry))

    def is_settled(self, candidate: Candidate) -> bool:
        """Whether its row needs no launch: it has a fault, or its build is there and says all."""
        return candidate.fault is not None or (
            self._builds.is_ready(candidate) and self._builds.result(candidate).verdict is not None
        )

    def wait_for_one(self, candidates: Sequence[Candidate], timeout_s: float | None = None) -> None:
        """Return when at least one of `candidates`, none of which has a fault, is built, or after `timeout_s`."""
        self._builds.wait_for_one(candidates, timeout_s)

    def build_of(self, candidate: Candidate) -> Build:
        return self._extended.get(candidate) or self._builds.result(candidate)

    def build_asked(self, candidate: Candidate, calls: Sequence[Mapping[str, Any]]) -> Verdict | None:
        """Build what the worker of `candidate` asked for, for those after it; the verdict on what does not build."""
        build, verdict = build_asked(
            candidate, self.build_of(candidate), calls, self._builders, self._cache, _JOBS_OF_ASKED
        )
        self._extended[candidate] = build
        return verdict

    def prepared(self, entry: Baseline | Candidate) -> tuple[Prepared, WorkerLauncher]:
        """What the judge needs to try `entry`, once it is built."""
        return self._baseline(entry) if isinstance(entry, Baseline) else self._candidate(entry)

    def _baseline(self, baseline: Baseline) -> tuple[Prepared, WorkerLauncher]:
        path = write_baseline(baseline, self._problem, self._sizes, self._folder)
        # On a CPU all problems share one: Inductor first tries which instructions its compiler has, 9 s on one core.
        own = "" if self._backend.limits.is_host else f"-{baseline_hash(path)}"
        warm = self._warm_folder(f"{baseline.name}{own}")
        allowed = baseline.precision_class or self._problem.accuracy.precision_class
        prepared = Prepared(baseline.name, str(path), {}, (), warm / "triton", allowed, "torch", is_baseline=True)
        return prepared, WorkerLauncher(self._backend, self.sandbox, warm, baseline.imports, [path], self._hidden)

    def _candidate(self, candidate: Candidate) -> tuple[Prepared, WorkerLauncher]:
        build = self.build_of(candidate)
        key = self._cache.key(candidate, self._toolchain)
        # Only what compiles when it runs has something to keep; others would have a place to store files for ever.
        compiles = candidate.language == "triton" or "torch.compile" in candidate.source
        warm = self._warm_folder(key) if compiles else self._folder / "warm" / key
        prepared = Prepared(
            candidate.name, str(candidate.file_in(self._folder).resolve()), build.manifest,
            tuple(extension.path for extension in build.extensions), warm / "triton",
            self._problem.accuracy.precision_class, candidate.language, origin=str(candidate.path.resolve()),
            refused=frozenset(build.failed), stand_in_gpu=stand_in_gpu_of(candidate, self._toolchain),
            unproven=build.unproven,
        )
        beside, path, reference = candidate.beside(), Path(prepared.path), self._problem.reference_path.resolve()
        own = [path.parent] if candidate.files else [each for each in beside.own if each.resolve() != reference]
        readable = [path, *own, *(extension.path.parent for extension in build.extensions)]
        hidden = [*self._hidden, *beside.folders]  # of these folders it is to see nothing else
        # Inductor's compiler finds its files by itself but where the path to them has a blank.
        places = f"{sys.prefix}{warm}"
        is_to_mend = "torch.compile" in candidate.source and shlex.quote(places) != places
        imports = BASELINES["torch.compile"].imports if is_to_mend else ()
        return prepared, WorkerLauncher(self._backend, self.sandbox, warm, imports, readable, hidden)

    def _warm_folder(self, name: str) -> Path:
        """Where an entry's own compiled Triton and Inductor kernels outlive the run."""
        folder = self._cache.root / "warm" / f"{self._toolchain.torch}-{self._toolchain.sm}" / name
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # the clock of the least recently used
        return folder


def sound_of(problem: Problem, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return what is to be built: the problem's own baseline, which all others wait for, then candidates without fault."""
    own = [] if problem.baseline is None else [problem.baseline]
    return [*own, *(candidate for candidate in candidates if candidate.fault is None)]


def toolchain_for(capability: str | None, archs: Sequence[str]) -> Toolchain:
    """What builds for a GPU of this compute capability ("9.0"); without one, for `archs`."""
    arch = arch_of(tuple(int(part) for part in capability.split("."))) if capability else None
    return find_toolchain(arch, archs)


def queue_for(
    problem: Problem, sound: Sequence[Candidate], toolchain: Toolchain, settings: Settings, device: DeviceIdentity,
    cache: Cache, sandbox: Sandbox, gently: bool = False, pool: ThreadPoolExecutor | None = None,
) -> BuildQueue:
    """The queue that builds candidates for `problem` at all sizes of the `device`, in a `pool` if others share one."""
    init = _init_of(problem, device.kind)
    return BuildQueue(sound, toolchain, cache, settings, sandbox, init, gently, facts_of(device), pool)


def facts_of(device: DeviceIdentity) -> DeviceFacts | None:
    """What a builder may answer of a GPU; None for another device, or where something of it is not known."""
    sizes = device.sm_count, device.memory_bytes, device.l2_bytes
    if device.sm is None or None in sizes:
        return None
    return DeviceFacts(device.name, device.sm, *sizes)


def _init_of(problem: Problem, device_kind: str) -> dict[str, Any]:
    """How a candidate's `ModelNew` is constructed on a device of that kind ("cuda" or "cpu"), for `Builders`."""
    if problem.form is not None:
        return {}  # it takes nothing, and builds as it is imported
    sizes = [problem.timed_sizes(device_kind), *problem.checks_for(device_kind)]
    return {"reference": str(problem.reference_path.resolve()), "sizes": sizes}


@contextmanager
def undisturbed() -> Iterator[None]:
    """Hold the handler of SIGINT back until the end of the `with`, in which nothing may wait for the user.

    What puts things away would else leave half of them there. In the main thread: elsewhere none is called.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came = []
    signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[0])
