"""What the baseline's own time says of a candidate that it is timed beside."""

from __future__ import annotations

from dataclasses import replace

import pytest
from audited_timings import CONTROL, timing_of, verdict_on

from harness.audit.clock_audit import check_baseline, check_times
from harness.launch.failures import Failed
from harness.model.device_limits import CPU, CUDA
from harness.model.verdict import Status
from harness.timing.control import Control
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe


def test_an_eager_that_is_slower_beside_a_candidate_alone_is_the_candidates_doing():
    def eager_alone_us(held):
        return 1001.0

    check_baseline(timing_of(baseline_us=1015.0), CUDA, CONTROL, eager_alone_us)
    with pytest.raises(Failed, match=r"eager took 1500.0 µs while .* 1001.0 µs once it was gone") as caught:
        check_baseline(timing_of(baseline_us=1500.0), CUDA, CONTROL, eager_alone_us)
    assert caught.value.verdict.status is Status.REJECTED
    assert caught.value.beside_control


def test_a_small_eager_may_scatter_by_microseconds():
    check_baseline(timing_of(baseline_us=12.0), CUDA, Control(1.0, 1.0, 10.0), lambda held: 10.0)
    check_baseline(timing_of(baseline_us=190.0), CPU, Control(1.0, 1.0, 10.0), lambda held: 10.0)


def test_an_eager_that_is_a_little_slower_beside_a_candidate_is_doubted_and_not_blamed_on_it():
    with pytest.raises(Failed) as caught:
        check_baseline(timing_of(baseline_us=1030.0), CUDA, CONTROL, lambda held: 1000.0)
    assert caught.value.verdict.status is Status.UNSURE
    with pytest.raises(Failed) as caught:
        check_baseline(timing_of(baseline_us=1406.0), CPU, Control(1.0, 1.0, 143.0), lambda held: 143.0)
    assert caught.value.verdict.status is Status.UNSURE


def test_an_eager_that_stays_slow_is_a_disturbed_machine_and_nobodys_fault():
    with pytest.raises(Failed, match="something else is using this device") as caught:
        check_baseline(timing_of(baseline_us=1500.0), CUDA, CONTROL, lambda held: 1490.0)
    assert caught.value.verdict.status is Status.UNSURE


@pytest.mark.parametrize(("beside_us", "alone_ungated_us", "status"), [
    (1500.0, 1600.0, None), (1500.0, 1200.0, Status.UNSURE), (1600.0, 990.0, Status.REJECTED),
])
def test_beside_one_that_cannot_be_queued_ahead_eager_is_held_against_itself_as_little_queued(
    beside_us, alone_ungated_us, status
):
    """Of hundreds of short kernels eager takes longer where the host shows; that is nobody's doing."""
    asked = []

    def eager_alone_us(held):
        asked.append(held)
        return 1000.0 if held else alone_ungated_us

    timing = timing_of(baseline_us=beside_us, hidden=False)
    if status is None:
        check_baseline(timing, CUDA, CONTROL, eager_alone_us)
    else:
        with pytest.raises(Failed) as caught:
            check_baseline(timing, CUDA, CONTROL, eager_alone_us)
        assert caught.value.verdict.status is status
    assert asked == [False]


@pytest.mark.parametrize(("is_gated", "beside_us", "status"), [
    (False, 1300.0, None), (False, 1490.0, None), (False, 1600.0, Status.REJECTED), (True, 1300.0, Status.UNSURE),
])
def test_where_the_reference_cannot_be_queued_ahead_the_interval_reaches_its_usual_time(is_gated, beside_us, status):
    """Eager of 6,244 kernels took 36 ms beside the control and 46 beside its exact copy, on a host that was busy."""
    control, timing = replace(CONTROL, is_gated=is_gated), timing_of(baseline_us=beside_us, hidden=False)
    if status is None:
        check_baseline(timing, CUDA, control, lambda held: pytest.fail("it was timed again without need"))
        return
    with pytest.raises(Failed) as caught:
        check_baseline(timing, CUDA, control, lambda held: 990.0)
    assert caught.value.verdict.status is status


UNEVEN_US = [900.0, 950.0, 1000.0, 1050.0, 1100.0] * 4  # the middle half spans 100


@pytest.mark.parametrize("probe", [Probe.EARLY_READ, Probe.LATE_INPUT, Probe.INPUT_VALUE])
@pytest.mark.parametrize(("gained_us", "control", "status"), [
    (250.0, replace(CONTROL, is_gated=False), None), (250.0, None, None), (250.0, CONTROL, Status.REJECTED),
    (350.0, replace(CONTROL, is_gated=False), Status.REJECTED),
])
def test_where_the_reference_cannot_be_queued_ahead_a_gain_within_the_scatter_is_chance(probe, gained_us, control, status):
    timing = timing_of(hidden=False, overhead_us=CONTROL.ungated_overhead_us)
    timing.candidate_us = list(UNEVEN_US)
    timing.probe_results[probe] = ProbeResult(1000.0, 1000.0 - gained_us, findings=5, limits=CUDA.ungated_probe)
    if status is None:
        check_times(timing, CUDA, None, control)
    else:
        assert verdict_on(timing, control=control).status is status


def test_a_baseline_that_is_as_fast_as_ever_is_not_timed_again():
    def never(held):
        raise AssertionError("eager was timed again without need")

    check_baseline(timing_of(baseline_us=900.0), CUDA, CONTROL, never)
    check_baseline(timing_of(baseline_us=9000.0), CUDA, None, never)
