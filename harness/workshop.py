"""What lasts as long as a run: the builds, the wall, the caches, and the files that the baselines are written to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness.baselines import Baseline, write_baseline
from harness.build.cache import Cache
from harness.build.environment import arch_of, find_toolchain
from harness.build.product import Build
from harness.build.queue import BuildQueue
from harness.candidate import Candidate
from harness.device.bench import Bench
from harness.problem import Problem
from harness.records.assembling import baseline_hash
from harness.referee.judgement import Contestant
from harness.referee.players import PlayerStarter
from harness.sandbox.walls import best_wall
from harness.settings import Settings


class Workshop:
    """Builds `candidates` from the moment it is made; use it in a `with`."""

    def __init__(
        self, problem: Problem, candidates: Sequence[Candidate], bench: Bench, settings: Settings,
        archs: Sequence[str] = (),
    ) -> None:
        capability = bench.identity.sm
        arch = arch_of(tuple(int(part) for part in capability.split("."))) if capability else None
        self._problem, self._bench = problem, bench
        self._sizes: Mapping[str, int] = problem.timed_sizes(bench.kind)
        self._toolchain = find_toolchain(arch, archs)
        self._cache = Cache()
        self._folder = Path(tempfile.mkdtemp(prefix="kernel-referee-"))
        self._sound = [candidate for candidate in candidates if candidate.fault is None]
        self.wall = best_wall()
        init = {"reference": str(problem.reference_path.resolve()), "sizes": dict(self._sizes)}
        self._builds = BuildQueue(self._sound, self._toolchain, self._cache, settings, self.wall, init)

    def __enter__(self) -> Workshop:
        return self

    def __exit__(self, *_: object) -> None:
        self._builds.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def wait_for_builds(self, tell: Callable[[str], None]) -> None:
        """Wait until all candidates are built, telling of each that had to be waited for."""
        for position, candidate in enumerate(self._sound, 1):
            if not self._builds.is_ready(candidate):
                tell(f"building {candidate.name} ({position} of {len(self._sound)})")
            self._builds.result(candidate)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is being built any more."""
        return all(self._builds.is_ready(candidate) for candidate in self._sound)

    def is_ready(self, entry: Baseline | Candidate) -> bool:
        """Whether a contestant can be made of `entry` without waiting."""
        return isinstance(entry, Baseline) or (entry.fault is None and self._builds.is_ready(entry))

    def build_of(self, candidate: Candidate) -> Build:
        return self._builds.result(candidate)

    def contestant(self, entry: Baseline | Candidate) -> tuple[Contestant, PlayerStarter]:
        """What the judge needs to play `entry`, once it is built."""
        return self._baseline(entry) if isinstance(entry, Baseline) else self._candidate(entry)

    def _baseline(self, baseline: Baseline) -> tuple[Contestant, PlayerStarter]:
        path = write_baseline(baseline, self._problem, self._sizes, self._folder)
        warm = self._warm_folder(f"{baseline.name}-{baseline_hash(path)}")
        precision_class = baseline.precision_class or self._problem.accuracy.precision_class
        contestant = Contestant(
            baseline.name, str(path), {}, (), warm / "triton", precision_class, "torch", is_baseline=True
        )
        return contestant, PlayerStarter(self._bench, self.wall, warm)

    def _candidate(self, candidate: Candidate) -> tuple[Contestant, PlayerStarter]:
        build = self._builds.result(candidate)
        key = self._cache.key(candidate, self._toolchain)
        # Only what compiles when it runs has something to keep; others would have a place to store files for ever.
        compiles = candidate.language == "triton" or "torch.compile" in candidate.source
        warm = self._warm_folder(key) if compiles else self._folder / "warm" / key
        contestant = Contestant(
            candidate.name, str(candidate.path.resolve()), build.manifest,
            tuple(extension.path for extension in build.extensions), warm / "triton",
            self._problem.accuracy.precision_class, candidate.language,
        )
        return contestant, PlayerStarter(self._bench, self.wall, warm)

    def _warm_folder(self, name: str) -> Path:
        """Where a contestant's own compiled Triton and Inductor kernels outlive the run."""
        folder = self._cache.root / "warm" / f"{self._toolchain.torch}-{self._toolchain.sm}" / name
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # the clock of the least recently used
        return folder
