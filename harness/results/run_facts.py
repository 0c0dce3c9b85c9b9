"""What all records of one run share: the request in short, and what is measured of the device before its first entry."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from harness.device.bench import Bench
from harness.model.peaks import load_peaks
from harness.model.physics import SpeedLimits, speed_limits
from harness.model.problem import Problem
from harness.model.settings import Settings


@dataclass(frozen=True)
class RunFacts:
    """What all records of one run share."""

    run_id: str
    utc: str
    config: str
    config_hash: str
    command: str | None
    problem: Problem
    sizes: dict[str, int]
    bench: Bench
    limits: SpeedLimits | None
    useful_flops: float | None
    useful_bytes: float | None
    canary_gbps: float
    canary_tflops: float | None
    event_floor_us: float
    sandbox: str


def measured_facts(
    problem: Problem, sizes: Mapping[str, int], settings: Settings, bench: Bench, utc: str, *, command: str | None,
    sandbox: str,
) -> RunFacts:
    """The facts of a run that begins at `utc`, canaries and the limits of the device among them."""
    flops = problem.flops.evaluate(sizes) if problem.flops else None
    useful_bytes = problem.bytes.evaluate(sizes) if problem.bytes else None
    bandwidth = bench.copy_gbytes_s()
    peaks = None if bench.limits.is_host else load_peaks(bench.identity.name)
    return RunFacts(
        run_id=secrets.token_hex(8), utc=utc, config=settings.name, config_hash=settings.hash, command=command,
        problem=problem, sizes=sizes, bench=bench,
        limits=speed_limits(flops, useful_bytes, bandwidth, peaks, problem.accuracy.precision_class),
        useful_flops=flops, useful_bytes=useful_bytes, canary_gbps=bandwidth,
        canary_tflops=bench.multiply_add_tflops(), event_floor_us=bench.event_floor_us(),
        sandbox=f"{sandbox}; {bench.transport}",
    )
