"""A record in the fields of KernelBench's `KernelExecResult`, for programs that were written for it.

The judgement stays ours: `correctness` says what the status says, and times are of verified launches. As in
KernelBench, `runtime` and `runtime_stats` are milliseconds, and `runtime` is -1.0 where nothing was timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from harness.model.verdict import ReasonCode, Status
from harness.results.record import Record

_RIGHT = (Status.OK, Status.UNSURE)


def result_fields(record: Record, samples: Mapping[str, Any]) -> dict[str, Any]:
    """compiled, correctness, runtime, runtime_stats and metadata."""
    right = _is_right(record)
    stats = _runtime_stats(record, samples) if right else {}
    return {
        "compiled": _compiled(record), "correctness": right, "runtime": stats.get("mean", -1.0), "runtime_stats": stats,
        "metadata": _metadata(record, samples),
    }


def _is_right(record: Record) -> bool:
    """Whether every output that was asked for was right, timed or not."""
    return record.status in _RIGHT or record.reason_code is ReasonCode.NOT_TIMED


def _compiled(record: Record) -> bool:
    if record.status is Status.SKIPPED:
        return record.reason_code is ReasonCode.NEEDS_CPU
    return record.status is not Status.BUILD_FAILED and record.reason_code is not ReasonCode.BUILD_TIMEOUT


def _runtime_stats(record: Record, samples: Mapping[str, Any]) -> dict[str, Any]:
    times_ms = [time_us / 1e3 for worker in samples.get("players", []) for time_us in worker["candidate_us"]]
    if not times_ms:
        return {}
    return {
        "mean": statistics.fmean(times_ms), "std": statistics.pstdev(times_ms), "min": min(times_ms),
        "max": max(times_ms), "median": statistics.median(times_ms), "num_trials": len(times_ms),
        "hardware": record.device_name, "device": record.device_kind,
    }


def _metadata(record: Record, samples: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"hardware": record.device_name, "device": record.device_kind}
    errors = samples.get("errors", [])
    if errors:
        passed = sum(_passed(each) for each in errors)
        found["correctness_trials"] = f"({passed} / {len(errors)})"
    if _is_right(record):
        return found
    if record.status is Status.CHECKED:  # no error, and no verdict at the problem's own sizes either
        return {**found, "checked": record.reason}
    name = {Status.BUILD_FAILED: "compilation_error", Status.INCORRECT: "correctness_issue",
            Status.IMPRECISE: "correctness_issue"}.get(record.status, "runtime_error")
    if record.reason_code is ReasonCode.RAISED:
        name = "runtime_error"
    elif record.reason_code is ReasonCode.BUILD_TIMEOUT:
        name = "compilation_error"
    code = record.reason_code.value or record.status.value
    return {**found, name: record.reason, f"{name}_name": code}


def _passed(error: Mapping[str, Any]) -> bool:
    pairs = ((error["max_u"], error["allowed_max_u"]), (error["rms_u"], error["allowed_rms_u"]))
    return all(allowed is None or (found is not None and found <= allowed) for found, allowed in pairs)
