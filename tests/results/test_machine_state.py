"""The state of the device in a record, whether its row was timed or not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from harness.device.identity import Telemetry, Violations
from harness.results.assembly import state_fields
from harness.timing.timings import Timing

BENCH = SimpleNamespace(telemetry=lambda own_pids: Telemetry(
    sm_mhz=345, watts=70.0, celsius=31.0, throttle="", other_processes=2,
))


def test_a_row_that_was_timed_has_the_median_of_its_readings_and_all_reasons():
    readings = [
        Telemetry(sm_mhz=1980, watts=300.0, throttle="power_cap", other_processes=0),
        Telemetry(sm_mhz=1500, watts=500.0, throttle="", other_processes=1),
        Telemetry(sm_mhz=1200, watts=None, throttle="hw_thermal", other_processes=0),
    ]
    fields = state_fields(BENCH, [Timing(telemetry=readings[:2]), Timing(telemetry=readings[2:])])
    assert (fields["sm_mhz"], fields["watts"], fields["celsius"]) == (1500, 400.0, None)
    assert (fields["throttle"], fields["other_processes"]) == ("hw_thermal+power_cap", 1)


def test_one_that_was_not_has_a_reading_of_its_own_and_does_not_know_who_else_is_there():
    fields = state_fields(BENCH, [])
    assert (fields["sm_mhz"], fields["watts"], fields["celsius"], fields["throttle"]) == (345, 70.0, 31.0, "none")
    assert fields["other_processes"] is fields["power_violation_ms"] is None


@pytest.mark.parametrize(("of_workers", "told"), [
    ([Violations(2_000_000, 0), Violations(500_000, 0)], (2.5, 0.0)), ([Violations(2_000_000, 0), Violations()], (None, None)),
    ([], (None, None)),
])
def test_how_long_clocks_were_held_down_is_that_of_all_workers_and_unknown_where_it_is_of_one(of_workers, told):
    fields = state_fields(BENCH, [Timing(violations=each) for each in of_workers])
    assert (fields["power_violation_ms"], fields["thermal_violation_ms"]) == told
