"""The state of the device in a record: as it was while the row was timed, or as its record was made."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.device.bench import Bench
    from harness.referee.timed import Timing


def state_fields(bench: Bench, timings: Sequence[Timing]) -> dict[str, Any]:
    """Medians over the readings after each round, all reasons for throttling, and for how long limits held clocks down.

    Of what was not timed it is one reading now. Processes of the harness's own may be on the device then, and are not
    told from others: how many there are stays unknown.
    """
    readings = [reading for timing in timings for reading in timing.telemetry]
    readings = readings or [replace(bench.telemetry(set()), other_processes=None)]

    def typical(name: str) -> float | None:
        values = [getattr(reading, name) for reading in readings if getattr(reading, name) is not None]
        return statistics.median(values) if values else None

    throttles = [reading.throttle for reading in readings if reading.throttle is not None]
    names = sorted({name for throttle in throttles for name in throttle.split("+") if name})
    others = [reading.other_processes for reading in readings if reading.other_processes is not None]
    return {
        "sm_mhz": typical("sm_mhz"), "mem_mhz": typical("mem_mhz"), "watts": typical("watts"),
        "celsius": typical("celsius"), "throttle": ("+".join(names) or "none") if throttles else None,
        "power_violation_ms": _milliseconds(timing.violations.power_ns for timing in timings),
        "thermal_violation_ms": _milliseconds(timing.violations.thermal_ns for timing in timings),
        "other_processes": max(others) if others else None,
    }


def _milliseconds(of_players_ns: Iterable[int | None]) -> float | None:
    """Of all players together; None where it is not known of one."""
    known = list(of_players_ns)
    return None if not known or None in known else sum(known) / 1e6
