"""What a candidate asks for as it runs, and its import did not build: for a first `forward`, or for this device.

Its worker tells the calls, a builder makes them, and the next worker finds them by content like any other. They are
kept beside the build of its import, so that a later run has them from the start.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.build import outcome
from harness.build.builder_launcher import Builders
from harness.build.cache import Cache, digests_of
from harness.build.machine_faults import without_room
from harness.build.product import Build
from harness.model.candidate import Candidate
from harness.model.verdict import ReasonCode, Status, Verdict


def asked_before(build: Build, cache: Cache, key: str, place: Path) -> Build:
    """`build`, which is kept under `key`, with what workers of the candidate in `place` asked for in earlier runs."""
    if build.verdict is None:
        for more in cache.all_kept(_key_of_asked(key), place):
            if len(build.extensions) >= outcome.MOST_EXTENSIONS:
                break  # whoever asks for others in each run has no use for those of the last ones
            build = build.and_also(more)
    return build


def build_asked(
    candidate: Candidate, build: Build, calls: Sequence[Mapping[str, Any]], builders: Builders, cache: Cache, jobs: int
) -> tuple[Build, Verdict | None]:
    """`build` with what came of the `calls`, made by `jobs` compilers at once, and the verdict on those that fail."""
    try:
        place, key = candidate.path.resolve().parent, cache.key(candidate, builders.toolchain)
        with cache.staging() as private:
            began, began_at = time.monotonic(), time.time()
            ending = builders.run(candidate, private, jobs, calls=calls)
            seconds = time.monotonic() - began
            more, files = outcome.judge(ending, candidate, builders.toolchain, private, seconds, builders.timeout_s)
            if more.verdict is None:
                kept = sorted(each.key for each in more.extensions)
                name = f"{_key_of_asked(key)}-{hashlib.sha256(repr(kept).encode()).hexdigest()[:8]}"
                more = cache.store(name, more, digests_of(map(Path, files), began_at), place)
    except OSError as error:
        reason = f"could not be built in {cache.root} ({error})"
        return build, without_room([cache.root]) or Verdict(Status.BUILD_FAILED, ReasonCode.COMPILE_ERROR, reason)
    return build.and_also(more), more.verdict


def may_go_on(verdict: Verdict) -> bool:
    """Whether a candidate may do without what ended so: PyTorch would have raised, and it may heed that."""
    return verdict.status is Status.BUILD_FAILED


def _key_of_asked(key: str) -> str:
    return hashlib.sha256(f"asked as it ran: {key}".encode()).hexdigest()[:32]
