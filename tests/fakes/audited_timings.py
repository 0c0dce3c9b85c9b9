"""Timings with one thing said against them, and what the audit of clocks says of it."""

from __future__ import annotations

import pytest

from harness.audit.clock_audit import check_times
from harness.launch.failures import Failed
from harness.model.device_limits import CPU, CUDA, limits_of
from harness.timing.control import Control
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe
from harness.timing.timings import Timing

CONTROL = Control(overhead_us=40.0, ungated_overhead_us=340.0, baseline_us=1000.0)
PROBES = {each.clock: each for each in (CUDA.probe, CUDA.ungated_probe, CPU.probe)}


def timing_of(time_us=1000.0, *, overhead_us=40.0, host_us=5.0, hidden=True, early_us=None, baseline_us=1000.0, kind="cuda"):
    return Timing(
        candidate_us=[time_us] * 20, baseline_us=[baseline_us] * 20, wall_less_time_us=[overhead_us] * 20,
        window_less_time_us=[overhead_us] * 20, host_us=[host_us] * 20, launch_hidden=hidden,
        probe_results={} if early_us is None else {Probe.EARLY_READ: ProbeResult(time_us, early_us, limits=PROBES[kind])},
    )


def verdict_on(timing, *, kind="cuda", floor_us=None, control=CONTROL):
    with pytest.raises(Failed) as caught:
        check_times(timing, limits_of(kind), floor_us, control)
    return caught.value.verdict
