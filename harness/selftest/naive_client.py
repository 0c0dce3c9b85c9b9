"""Asking the naive judge: its process behind the sandbox, started again when a case has brought it down. The times and
verdicts that come back are those of a judge that is there to be fooled; only the matrix shows them.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.model.paths import REPOSITORY
from harness.model.problem import Problem
from harness.model.verdict import Status
from harness.protocol.frames import WireError
from harness.sandbox.environment import scrubbed
from harness.sandbox.leftovers import remove_tree
from harness.sandbox.limits import default_limits
from harness.sandbox.spawn import Child, spawn
from harness.selftest.corpus import Case
from harness.selftest.matrix import NaiveResult

LIMIT_S, HANG_LIMIT_S = 20.0, 8.0
_GRACE_S = 15.0  # for the process itself: to import torch, and to end what a case has left
_MOST_MS = 1e9
_BROUGHT_DOWN = "brought the judge down"


class NaiveJudge(AbstractContextManager):
    """The naive judge of one device; use it in a `with`. `uuid` is the GPU's, None for a CPU."""

    def __init__(self, device_kind: str, uuid: str | None, toolkit: str | None = None) -> None:
        self._device = device_kind
        home = {"CUDA_HOME": toolkit} if toolkit else {}
        programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        self._environment = scrubbed(os.environ, {"CUDA_VISIBLE_DEVICES": uuid or "", "PATH": programs, **home})
        self._child: Child | None = None
        self._folder = tempfile.mkdtemp(prefix="kernel-referee-naive-")

    def __exit__(self, *_: object) -> None:
        self._end()
        remove_tree(self._folder)

    def judge(self, case: Case, problem: Problem, manifest: Mapping[str, Any]) -> NaiveResult:
        """What the naive judge says of `case`, whose built extensions are in `manifest`."""
        hangs = any(pair.startswith(f"{Status.TIMED_OUT.value}/") for pair in case.expected)
        limit_s = HANG_LIMIT_S if hangs else LIMIT_S
        request = {
            "case": str(case.path.resolve()), "reference": str(problem.reference_path.resolve()),
            "sizes": problem.timed_sizes(self._device), "device": self._device, "manifest": dict(manifest),
            "limit_s": limit_s,
        }
        try:
            if self._child is None:
                self._child = spawn(
                    "harness.selftest.naive_server", environment=self._environment, repository=REPOSITORY,
                    private=Path(tempfile.mkdtemp(prefix="process-", dir=self._folder)),
                    limits=replace(default_limits(), own_scratch=False),  # cases of any place are yet to come
                )
            self._child.channel.send(request, _GRACE_S)
            reply = self._child.channel.receive(2 * _GRACE_S + limit_s)
        except WireError:
            death = self._child.death()
            self._end()
            return NaiveResult(end=_BROUGHT_DOWN if death == "still running" else f"{_BROUGHT_DOWN}: {death}")
        return result_of(reply)

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


def result_of(reply: Mapping[str, Any]) -> NaiveResult:
    """The reply of the process as a result; what a case may have forged in it is taken at its word or dropped."""
    answer = reply.get("answer") if isinstance(reply.get("answer"), dict) else {}
    correct = answer.get("correct") if isinstance(answer.get("correct"), bool) else None
    return NaiveResult(
        correct, _milliseconds(answer.get("ms")), _milliseconds(answer.get("eager_ms")),
        str(answer.get("raised") or "")[:60], str(answer.get("said") or "")[:200], str(reply.get("end") or "")[:60],
    )


def _milliseconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(max(-_MOST_MS, min(value, _MOST_MS)))
