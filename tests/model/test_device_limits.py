"""Each device carries its limits, and who judges asks these and not which device it has."""

from __future__ import annotations

import ast
from dataclasses import fields

import pytest

from harness.device.cpu import CpuBackend
from harness.device.cuda import CudaBackend
from harness.model.device_limits import CPU, CUDA, limits_of
from harness.model.paths import REPOSITORY

HARNESS = REPOSITORY / "harness"
JUDGING = [path for room in ("judge", "timing", "audit") for path in sorted((HARNESS / room).rglob("*.py"))]
# What a candidate is written in, and where PyTorch has a tensor.
OTHER_QUESTIONS = {"language", "type"}


@pytest.mark.parametrize(("backend", "kind", "limits"), [(CpuBackend, "cpu", CPU), (CudaBackend, "cuda", CUDA)])
def test_a_backend_carries_those_of_its_kind(backend, kind, limits):
    assert backend.limits is limits_of(backend.kind) is limits and backend.kind == kind


@pytest.mark.parametrize("path", JUDGING, ids=lambda path: str(path.relative_to(HARNESS)))
def test_no_judging_asks_which_device_it_has(path):
    asked = [
        node.lineno for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Compare) and _names_a_device(node) and not _attributes(node) & OTHER_QUESTIONS)
        or (isinstance(node, ast.Dict) and {"cuda", "cpu"} & {getattr(key, "value", None) for key in node.keys})
    ]
    assert not asked, f"{path}:{asked} names a device: give its limits another field"


def _names_a_device(node: ast.Compare) -> bool:
    sides = [node.left, *node.comparators]
    return any(isinstance(side, ast.Constant) and side.value in ("cuda", "cpu") for side in sides)


def _attributes(node: ast.Compare) -> set[str]:
    return {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


@pytest.mark.parametrize("limits", [CUDA, CPU], ids=["cuda", "cpu"])
def test_what_is_blamed_on_a_candidate_is_more_than_what_is_doubted(limits):
    assert limits.certain_times > 1
    assert limits.tail_blamed_us > limits.tail_us and limits.slowed_blamed_us > limits.slowed_us
    for probe in (limits.probe, limits.ungated_probe):
        assert 0 < probe.share < 1 and probe.least_us > 0 and not (probe.is_steady and probe.waits_for_host)


def test_a_cpu_allows_no_less_than_a_gpu():
    """A busy core shows in every clock that is read on it. A CPU has no streams, and a long call is no special case there."""
    names = {field.name for field in fields(CUDA)} - {"in_worker_below_us", "streams_us", "long_call_us"}
    shares = [name for name in names if name.endswith(("_share", "_us"))]
    assert len(shares) > 10
    assert all(getattr(CPU, name) >= getattr(CUDA, name) for name in shares)
