"""What probes say against a reported time: early inputs, inputs that come late, other values."""

from __future__ import annotations

import pytest
from audited_timings import CONTROL, PROBES, timing_of, verdict_on

from harness.audit.clock_audit import check_times
from harness.model.device_limits import CPU, CUDA, limits_of
from harness.model.verdict import ReasonCode, Status
from harness.timing.probes.result import ProbeResult
from harness.timing.probes.schedule import Probe


@pytest.mark.parametrize(("early_us", "kind", "believed"), [
    (1000.0, "cuda", True), (2000.0, "cuda", True), (955.0, "cuda", True), (945.0, "cuda", False),
    (10.0, "cuda", False), (601.0, "cpu", True),
    (901.0, "ungated", True), (850.0, "ungated", False),
])
def test_a_time_that_falls_when_inputs_are_readable_early_is_not_believed(early_us, kind, believed):
    timing, kind = timing_of(early_us=early_us, kind=kind), kind.replace("ungated", "cuda")
    if believed:
        check_times(timing, limits_of(kind), None, CONTROL)
        return
    verdict = verdict_on(timing, kind=kind)
    assert verdict.reason_code is ReasonCode.CLOCKS_DISAGREE
    assert f"{early_us:.1f} µs when its inputs are readable" in verdict.reason


@pytest.mark.parametrize(("completed_us", "kind", "believed"), [
    (1040.0, "cuda", True), (1060.0, "cuda", False), (900.0, "cuda", True), (1060.0, "cpu", True),
])
def test_a_time_that_rises_when_inputs_are_complete_at_the_last_moment_is_not_believed(completed_us, kind, believed):
    timing = timing_of()
    timing.probe_results[Probe.LATE_INPUT] = ProbeResult(completed_us, 1000.0, limits=PROBES[kind])
    if believed:
        check_times(timing, limits_of(kind), 500.0, CONTROL)
        return
    verdict = verdict_on(timing, kind=kind)
    assert f"takes 1000.0 µs, but {completed_us:.1f} µs when the last of its inputs come" in verdict.reason


@pytest.mark.parametrize(("usual_us", "early_us", "status"), [
    (3164.7, 2164.8, None), (3164.7, 1321.3, Status.UNSURE), (15000.0, 10900.0, None), (15000.0, 8000.0, Status.REJECTED),
])
def test_on_a_cpu_a_gain_that_another_load_could_make_is_doubted_and_not_blamed(usual_us, early_us, status):
    timing = timing_of(usual_us, early_us=early_us, baseline_us=usual_us, kind="cpu")
    if status is None:
        check_times(timing, CPU, None, CONTROL)
        return
    verdict = verdict_on(timing, kind="cpu")
    assert verdict.status is status
    assert verdict.reason_code is (ReasonCode.NOISY if status is Status.UNSURE else ReasonCode.CLOCKS_DISAGREE)


@pytest.mark.parametrize(("valued_us", "status"), [(1040.0, None), (1060.0, Status.REJECTED)])
def test_a_call_that_takes_longer_on_other_values_goes_by_them(valued_us, status):
    timing = timing_of(1000.0)
    timing.probe_results[Probe.INPUT_VALUE] = ProbeResult(valued_us, 1000.0)
    if status is None:
        check_times(timing, CUDA, None, CONTROL)
    else:
        verdict = verdict_on(timing)
        assert (verdict.status, verdict.reason_code) == (status, ReasonCode.GOES_BY_VALUES)
        assert "takes 1000.0 µs, but 1060.0 µs when its inputs have random signs, or other low bits" in verdict.reason


def test_where_a_machine_was_busier_nobody_is_rejected_for_values():
    timing = timing_of(1000.0)
    timing.probe_results[Probe.INPUT_VALUE] = ProbeResult(1500.0, 1000.0, gained_beside_us=0.0, findings=5)
    assert verdict_on(timing).status is Status.UNSURE


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
@pytest.mark.parametrize("probe", [Probe.EARLY_READ, Probe.LATE_INPUT, Probe.INPUT_VALUE])
def test_who_begins_early_now_and_then_only_is_doubted(kind, probe):
    for findings, believed in ((2, True), (3, False)):
        timing = timing_of()
        timing.probe_results[probe] = ProbeResult(1000.0, 1000.0, findings=findings)
        if believed:
            check_times(timing, limits_of(kind), None, CONTROL)
            continue
        verdict = verdict_on(timing, kind=kind)
        assert (verdict.status, verdict.reason_code) == (Status.UNSURE, ReasonCode.NOISY)
        assert verdict.reason.startswith("3 times, though not each time, a call took ")
        of_values = "more when its inputs had random signs, or other low bits"
        assert (of_values in verdict.reason) == (probe is Probe.INPUT_VALUE)


def test_a_small_call_may_scatter_by_microseconds():
    check_times(timing_of(10.0, early_us=7.5), CUDA, None, CONTROL)
