"""Builds as tasks of a cluster: any node with the same compilers makes one, and hands it over through the object store.

Each node keeps what it has built in its own cache, by content, as a run of one machine does. A build whose node is lost,
or has other compilers than the device's, is made on a node of that device's instead.
"""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.build.product import Build
from harness.device.identity import DeviceIdentity
from harness.model.candidate import Candidate
from harness.model.problem import Problem
from harness.model.settings import Settings
from harness.model.verdict import ReasonCode, Status, Verdict
from harness.runs.cluster.parcel import Carried, Shelf, packed_build, packed_candidate, packed_problem, settings_of

if TYPE_CHECKING:
    from harness.runs.cluster.link import Link

# What two nodes must agree in, beside this software, for one to load what the other built; one processor too, for what is
# built for that of its node.
_OF_BOTH = ("torch", "torch_cuda", "nvcc_version", "nvcc_build", "cxx_version", "python", "arch", "compile_only", "more_archs")
_FOR_ITS_HOST = "march=native"
_POLL_S = 0.02


def built(common: str, request: str, wanted: Mapping[str, Any]) -> tuple[str, Carried]:
    """Build what `request` says, and `common` of all of a problem, on the node that this runs on, in its sandbox and with
    its cache.

    Returns a word ("built", or "unlike" where this node's compilers are not those that are `wanted`), and the build.
    """
    from harness.build.cache import Cache
    from harness.judge.build_pool import queue_for, toolchain_for
    from harness.sandbox.sandbox_choice import strongest_sandbox

    asked = json.loads(common) | json.loads(request)
    device = DeviceIdentity(**asked["device"])
    here = toolchain_here(device.sm, asked["archs"])
    of_host = _FOR_ITS_HOST in asked["candidate"]["source"]
    if not asked["anyhow"] and any(here[name] != value for name, value in wanted.items() if of_host or name != "host"):
        return "unlike", []
    with tempfile.TemporaryDirectory(prefix="kernel-referee-build-") as folder:
        shelf = Shelf(Path(folder))
        problem, candidate = shelf.problem(asked["problem"]), shelf.candidate(asked["candidate"])
        queue = queue_for(
            problem, [candidate], toolchain_for(device.sm, asked["archs"]), settings_of(asked["settings"]), device, Cache(),
            strongest_sandbox(),
        )
        with queue:
            values, files = packed_build(queue.result(candidate))
    return "built", [json.dumps(values), files]


def toolchain_here(capability: str | None, archs: Sequence[str]) -> dict[str, Any]:
    """Return what a build must agree in with this node, to be loaded here."""
    from harness.judge.build_pool import toolchain_for
    from harness.results.assembly import harness_hash

    values = asdict(toolchain_for(capability, archs)) | {"harness": harness_hash()}
    return {name: values[name] for name in (*_OF_BOTH, "harness", "host")}


@functools.lru_cache
def _task(function: Callable[..., Any]) -> Any:
    """Return `function` as a task of Ray's: one for all problems, since the cluster keeps each until it ends."""
    import ray

    return ray.remote(function)


@dataclass
class _Begun:
    """A build that was begun: references to its word, and to its text and files."""

    candidate: Candidate
    word: Any
    build: Any
    is_near: bool = False  # on a node of the device's, whatever its compilers are


class ClusterBuilds:
    """Builds candidates for the devices of one model, on whatever nodes have a core free; `node` is one of the device's.

    At most `ahead` are begun and not yet given up, so that what thousands of candidates are built to fills no memory; None
    begins all. Each build keeps its place in the object store until it is given up. One is known by its candidate, or by a
    `key` of the caller's; `on_ready` is called with that once it is built.
    """

    def __init__(
        self, link: Link, problem: Problem, settings: Settings, device: DeviceIdentity, node: str,
        archs: Sequence[str] = (), ahead: int | None = None, on_ready: Callable[[Hashable], None] = lambda key: None,
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # Soft: where the device's node is gone, on any.
        near = {"num_cpus": 1, "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True)}
        # Ray retries without end what ran out of memory; here a build that ends machines meets two of them.
        task = functools.partial(_task(link.build).options, num_returns=2, max_retries=0)
        self._anywhere, self._near = task(num_cpus=1, scheduling_strategy="SPREAD"), task(**near)
        self._ahead = ahead
        # As text: it goes with each of thousands.
        self._asked = json.dumps({
            "problem": packed_problem(problem), "settings": asdict(settings), "device": asdict(device),
            "archs": list(archs),
        })
        self._on_ready = on_ready
        self._new: deque[tuple[Hashable, Candidate]] = deque()
        self._begun: dict[Hashable, _Begun] = {}
        self._ready: set[Hashable] = set()
        self._coming: dict[Any, Hashable] = {}  # by the reference to the word
        self._unwanted = link.unwanted  # of all that build over this link
        self._looked_s = 0.0
        self.is_paused = False  # what is being built is built, and nothing more begun
        self._wanted = _task(toolchain_here).options(**near).remote(device.sm, list(archs))
        if problem.baseline is not None:
            self.add([problem.baseline])

    def add(self, candidates: Sequence[Candidate]) -> None:
        """Build these too, those without a fault."""
        for each in candidates:
            self.add_as(each, each)

    def add_as(self, key: Hashable, candidate: Candidate) -> None:
        """Build it too, to be known by `key`; one with a fault is not built."""
        if candidate.fault is None:
            self._new.append((key, candidate))

    def give_up(self, key: Hashable) -> None:
        """Forget a build, or that it was to come; one that is begun is made nevertheless, into its node's cache.

        Ray's `cancel` is not for this: where it meets a task that is just being submitted, or just ends, it ends this whole
        process (ray-project/ray#55131 tells of one such race, of actors' calls; of tasks two are in Ray 2.60).
        """
        self._ready.discard(key)
        begun = self._begun.pop(key, None)
        if begun is None:
            self._new = deque(each for each in self._new if each[0] != key)
        elif self._coming.pop(begun.word, None) is not None:
            self._unwanted.add(begun.word)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being built any more, or for now; what anybody gave up counts until it is made."""
        self.look()
        return not self._coming and (self.is_paused or not self._new) and not self._unwanted

    @property
    def waiting(self) -> int:
        """How many are not built yet."""
        return len(self._new) + len(self._coming)

    def is_ready(self, key: Hashable) -> bool:
        """Whether `result` would answer at once."""
        self.look()
        return key in self._ready

    def result(self, key: Hashable) -> Any:
        """Return the text and the files of a build that is ready, or the reference to them."""
        return self._begun[key].build

    def close(self) -> None:
        """Give up all that is not built yet."""
        self._new.clear()
        for key in list(self._begun):
            self.give_up(key)

    def look(self) -> None:
        """See what has been built, and begin more; nothing happens where that was done a moment ago."""
        if time.monotonic() - self._looked_s < _POLL_S:
            return
        import ray

        if self._coming:
            done, _ = ray.wait(list(self._coming), num_returns=len(self._coming), timeout=0, fetch_local=False)
            for word in done:
                self._take(word)
        if self._unwanted:
            ended, _ = ray.wait(list(self._unwanted), num_returns=len(self._unwanted), timeout=0, fetch_local=False)
            self._unwanted.difference_update(ended)
        while self._new and not self.is_paused and (self._ahead is None or len(self._begun) < self._ahead):
            self._begin(*self._new.popleft())
        self._looked_s = time.monotonic()

    def _begin(self, key: Hashable, candidate: Candidate, *, is_near: bool = False) -> None:
        request = json.dumps({"anyhow": is_near, "candidate": packed_candidate(candidate)})
        task = self._near if is_near else self._anywhere
        begun = self._begun[key] = _Begun(candidate, *task.remote(self._asked, request, self._wanted), is_near)
        self._coming[begun.word] = key

    def _take(self, word: Any) -> None:
        import ray

        key = self._coming.pop(word)
        begun = self._begun[key]
        try:
            is_built = ray.get(word) == "built"
        except ray.exceptions.RayError as error:  # that node is gone, or lacks this software
            is_built = begun.is_near
            if is_built:
                self._begun[key] = replace(begun, build=_lost(error))
        if not is_built:
            self._begin(key, begun.candidate, is_near=True)
            return
        self._ready.add(key)
        self._on_ready(key)


def _lost(error: Exception) -> Carried:
    """A build whose task ended without one: no fault of the candidate's is shown by that."""
    words = " ".join(str(error).split())[:200]
    reason = f"its build was lost with the process or machine that made it ({type(error).__name__}: {words}); run it again"
    return [json.dumps(packed_build(Build(Verdict(Status.SKIPPED, ReasonCode.DEVICE_LOST, reason)))[0]), {}]
