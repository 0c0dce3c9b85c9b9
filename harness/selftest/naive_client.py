"""Asking the naive judge: a process behind the sandbox for each case, forked where torch is imported already. The times
and verdicts that come back are those of a judge that is there to be fooled; only the matrix shows them.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.model.paths import REPOSITORY
from harness.model.problem import Problem
from harness.model.verdict import Status
from harness.protocol.clocks.idle_threads import SPIN
from harness.protocol.frames import FrameTimeout, WireError
from harness.sandbox.environment import scrubbed
from harness.sandbox.leftovers import remove_tree
from harness.sandbox.limits import default_limits
from harness.sandbox.prestart import PRELOADED
from harness.sandbox.spawn import Child, spawn
from harness.selftest.corpus import Case
from harness.selftest.matrix import NaiveResult

LIMIT_S, HANG_LIMIT_S = 20.0, 8.0
_START_S = 60.0  # to import torch, where it cannot be forked
_MOST_MS = 1e9


class NaiveJudge:
    """The naive judge of one device. `uuid` is the GPU's, None for a CPU."""

    def __init__(self, device_kind: str, uuid: str | None, toolkit: str | None = None) -> None:
        self._device = device_kind
        home = {"CUDA_HOME": toolkit} if toolkit else {}
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        spin = {name: os.environ[name] for name in SPIN if name in os.environ}  # as a worker's: forked from one process
        self._environment = scrubbed(
            os.environ, {"CUDA_VISIBLE_DEVICES": uuid or "", "PATH": programs, **home, **spin}
        )
        # The user's files are seen: nothing is decided by what becomes of a case here.
        self._limits = replace(default_limits(gpu=device_kind != "cpu"), own_scratch=False)

    def judge(self, case: Case, problem: Problem, manifest: Mapping[str, Any]) -> NaiveResult:
        """What the naive judge says of `case`, whose built extensions are in `manifest`."""
        hangs = any(pair.startswith(f"{Status.TIMED_OUT.value}/") for pair in case.expected)
        request = {
            "case": str(case.path.resolve()), "reference": str(problem.reference_path.resolve()),
            "sizes": problem.timed_sizes(self._device), "device": self._device, "manifest": dict(manifest),
        }
        private = Path(tempfile.mkdtemp(prefix="kernel-referee-naive-"))
        child = spawn(
            "harness.selftest.naive_loop", environment=self._environment, private=private, repository=REPOSITORY,
            limits=self._limits, preloaded=PRELOADED,
        )
        try:
            return result_of(*_heard(child, request, HANG_LIMIT_S if hangs else LIMIT_S))
        finally:
            child.kill()
            remove_tree(private)


def _heard(child: Child, request: Mapping[str, Any], limit_s: float) -> tuple[Mapping[str, Any], str]:
    """What the child answered within `limit_s` seconds, and how it ended by then where that is news: "" only for one
    that answered and then ended in order.
    """
    answer: Mapping[str, Any] | None = None
    deadline = time.monotonic() + limit_s
    try:
        child.channel.receive(_START_S)
        deadline = time.monotonic() + limit_s
        child.channel.send(dict(request), limit_s)
        answer = child.channel.receive(limit_s)
    except FrameTimeout:
        return {}, "hung"
    except WireError:
        pass  # what remains to be seen is the end
    code = child.wait(max(0.0, deadline - time.monotonic()))
    in_order = answer is not None and code == 0
    return answer or {}, "" if in_order else "hung" if code is None else child.death()


def result_of(answer: Mapping[str, Any], end: str) -> NaiveResult:
    """The answer of a process and its end as a result; what a case may have forged is taken at its word or dropped."""
    correct = answer.get("correct") if isinstance(answer.get("correct"), bool) else None
    return NaiveResult(
        correct, _milliseconds(answer.get("ms")), _milliseconds(answer.get("eager_ms")),
        str(answer.get("raised") or "")[:60], str(answer.get("said") or "")[:200], end[:60],
    )


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return None
    return float(max(-_MOST_MS, min(value, _MOST_MS)))
