"""Reads the raw samples beside a CSV, a JSON line for each record. What is missing or broken is simply not there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.reference.evidence import Evidence
from harness.results.record import Record


def read_samples(csv_path: Path, record: Record) -> dict[str, Any]:
    """The samples of `record`, as its run wrote them; empty when there are none to be had."""
    path = csv_path.with_suffix(".jsonl")
    try:
        return _samples_in(path, path.stat().st_mtime_ns).get((record.run_id, record.candidate, record.role), {})
    except OSError:
        return {}


@lru_cache(maxsize=1)
def _samples_in(path: Path, changed_ns: int) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The samples of a run by run, name and role, as the file was at that time. Raises OSError."""
    samples: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            body = json.loads(line)
        except ValueError:
            continue
        if isinstance(body, dict) and isinstance(body.get("samples"), dict):
            samples[tuple(str(body.get(name)) for name in ("run_id", "candidate", "role"))] = body["samples"]
    return samples


def compiler_reports(samples: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the compiler said of each kernel; empty where it said nothing."""
    return [each for each in _of_build(samples, "kernels") if isinstance(each, dict)]


def compiler_warnings(samples: Mapping[str, Any]) -> list[str]:
    """What the compilers warned of on the candidate's own lines."""
    return [str(each) for each in _of_build(samples, "compiler_warnings")]


def _of_build(samples: Mapping[str, Any], name: str) -> list[Any]:
    build = samples.get("build")
    values = build.get(name) if isinstance(build, Mapping) else None
    return values if isinstance(values, list) else []


def evidence_in(samples: dict[str, Any]) -> Evidence | None:
    """The evidence on the launch that failed; None for none, and for what is no evidence of ours."""
    body = samples.get("evidence")
    if not isinstance(body, dict):
        return None
    try:
        return Evidence.from_json(body)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
