"""Reads the raw samples that lie beside a CSV, one JSON line for each record; what is missing or broken is simply not
there, because the record stands without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.reference.evidence import Evidence
from harness.results.record import Record


def read_samples(csv_path: Path, record: Record) -> dict[str, Any]:
    """The samples of `record`, as its run wrote them; empty when there are none to be had."""
    try:
        lines = csv_path.with_suffix(".jsonl").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    found: dict[str, Any] = {}
    for line in lines:
        try:
            body = json.loads(line)
        except ValueError:
            continue
        if not isinstance(body, dict) or not isinstance(body.get("samples"), dict):
            continue
        if (body.get("run_id"), body.get("candidate"), body.get("role")) == (
            record.run_id, record.candidate, record.role
        ):
            found = body["samples"]
    return found


def compiler_reports(samples: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the compiler said of each kernel; empty where it said nothing."""
    build = samples.get("build")
    kernels = build.get("kernels") if isinstance(build, Mapping) else None
    return [each for each in kernels if isinstance(each, dict)] if isinstance(kernels, list) else []


def compiler_warnings(samples: Mapping[str, Any]) -> list[str]:
    """What the compilers warned of on the candidate's own lines."""
    build = samples.get("build")
    warnings = build.get("compiler_warnings") if isinstance(build, Mapping) else None
    return [str(each) for each in warnings] if isinstance(warnings, list) else []


def evidence_in(samples: dict[str, Any]) -> Evidence | None:
    """The evidence on the launch that failed; None for none, and for what is no evidence of ours."""
    body = samples.get("evidence")
    if not isinstance(body, dict):
        return None
    try:
        return Evidence.from_json(body)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
