"""What is measured of a device before its first entry is judged, and what every record of the run says of both."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from harness.device.bench import Bench
from harness.peaks import load_peaks
from harness.physics import limits
from harness.problem import Problem
from harness.records.assembling import RunFacts
from harness.settings import Settings


def measured_facts(
    problem: Problem, sizes: Mapping[str, int], settings: Settings, bench: Bench, utc: str, *, command: str | None,
    wall: str,
) -> RunFacts:
    """The facts of a run that begins at `utc`, canaries and the limits of the device among them."""
    flops = problem.flops.evaluate(sizes) if problem.flops else None
    useful_bytes = problem.bytes.evaluate(sizes) if problem.bytes else None
    bandwidth = bench.copy_gbytes_s()
    peaks = None if bench.limits.is_host else load_peaks(bench.identity.name)
    return RunFacts(
        run_id=secrets.token_hex(8), utc=utc, config=settings.name, config_hash=settings.hash, command=command,
        problem=problem, sizes=sizes, bench=bench,
        limits=limits(flops, useful_bytes, bandwidth, peaks, problem.accuracy.precision_class),
        useful_flops=flops, useful_bytes=useful_bytes, canary_gbps=bandwidth,
        canary_tflops=bench.multiply_add_tflops(), event_floor_us=bench.event_floor_us(),
        sandbox=f"{wall}; {bench.transport}",
    )
