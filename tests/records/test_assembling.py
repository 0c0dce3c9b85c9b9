"""From a build to what is kept of it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from harness.build.product import Build
from harness.build.report import KernelReport
from harness.records.assembling import samples_of
from harness.verdict import ReasonCode, Status, Verdict


def test_what_the_compiler_said_is_kept_for_each_kernel_and_architecture_also_without_a_judgement():
    kernels = tuple(KernelReport("tile", arch, 40, 8, 16, 2048, 380) for arch in ("sm_80", "sm_90a"))
    verdict = Verdict(Status.COMPILED, ReasonCode.NO_GPU, "for two")
    build = Build(
        verdict, kernels=kernels, built_by="nvcc 13.0", headers="slim", compiler_warnings="a.py:3: unused\na.py:4: x",
        log="x" * 30_000,
    )
    kept = samples_of(None, build)["build"]
    assert [kernel["arch"] for kernel in kept["kernels"]] == ["sm_80", "sm_90a"]
    assert kept["kernels"][0] == {
        "kernel": "tile", "arch": "sm_80", "registers": 40, "spill_bytes": 8, "stack_bytes": 16, "shared_bytes": 2048,
        "constant_bytes": 380,
    }
    assert kept["compiler_warnings"] == ["a.py:3: unused", "a.py:4: x"]
    assert kept["headers"] == "slim"
    assert len(kept["log"]) == 20_000


def test_a_baseline_has_no_build():
    assert samples_of(None, None) == {}
