"""What the floor and the judge's clock say against a reported time."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from audited_timings import CONTROL, timing_of, verdict_on

from harness.audit.clock_audit import check_times
from harness.launch.failures import Failed
from harness.model.device_limits import CPU, CUDA, limits_of
from harness.model.verdict import ReasonCode, Status
from harness.timing.control import LESS_SHARE, Control, reconcile
from harness.timing.stats import Interval
from harness.timing.three_clocks import ThreeClocks
from harness.timing.timings import Timing


def test_clocks_that_agree_and_a_time_above_the_floor_are_believed():
    check_times(timing_of(early_us=1000.0), CUDA, 500.0, CONTROL)


def test_four_fifths_of_the_floor_are_believed_and_less_is_not():
    check_times(timing_of(800.0), CUDA, 1000.0, CONTROL)
    verdict = verdict_on(timing_of(799.0), floor_us=1000.0)
    assert (verdict.status, verdict.reason_code) == (Status.REJECTED, ReasonCode.BELOW_FLOOR)
    assert "799.0" in verdict.reason
    assert "1000.0" in verdict.reason


def test_work_outside_the_timed_window_is_rejected_with_what_the_clocks_said():
    verdict = verdict_on(timing_of(1.0, overhead_us=2700.0))
    assert (verdict.status, verdict.reason_code) == (Status.REJECTED, ReasonCode.CLOCKS_DISAGREE)
    assert "1.0 µs" in verdict.reason
    assert "2660" in verdict.reason


@pytest.mark.parametrize(("streams", "overhead_us", "status"), [
    (1, 64.0, None), (1, 66.0, Status.UNSURE), (1, 89.0, Status.UNSURE), (1, 91.0, Status.REJECTED),
    (2, 84.0, None), (2, 86.0, Status.UNSURE), (2, 109.0, Status.UNSURE), (2, 111.0, Status.REJECTED),
])
def test_around_a_call_with_several_streams_of_its_own_the_harnesss_steps_may_take_longer(streams, overhead_us, status):
    timing = timing_of(overhead_us=overhead_us)
    timing.other_streams = streams
    if status is None:
        check_times(timing, CUDA, None, CONTROL)
    else:
        assert verdict_on(timing).status is status


def test_of_a_call_of_which_the_usual_share_is_more_several_streams_change_nothing():
    timing = timing_of(5000.0, overhead_us=139.0)
    timing.other_streams = 3
    check_times(timing, CUDA, None, CONTROL)
    assert verdict_on(replace(timing, wall_less_time_us=[141.0] * len(timing.wall_less_time_us))).status is Status.UNSURE


@pytest.mark.parametrize(("speedup", "apart"), [
    (Interval(1.03, 1.02, 1.04), 0.04), (Interval(0.8, 0.75, 0.85), 1 / 3), (Interval(1.0, 0.99, 1.02), 0.02), (None, 0.0),
    (Interval(0.9, 0.0, math.inf), math.inf), (Interval(0.9, 0.0, 1.5), math.inf),
])
def test_a_control_is_as_far_off_itself_as_its_interval_reaches(speedup, apart):
    timing = timing_of()
    timing.speedup = speedup
    assert Control.of(timing).apart == pytest.approx(apart)


def test_what_the_control_left_unexplained_too_is_no_evidence():
    check_times(timing_of(1.0, overhead_us=2700.0), CUDA, None, Control(2690.0, None, 1000.0))


def test_the_judges_clock_less_the_controls_steps_is_a_third_time_of_a_call():
    found = reconcile(timing_of(overhead_us=52.0), CONTROL, 990.0, CUDA)
    assert (found.events_us, found.traced_us, found.wall_us) == (1000.0, 990.0, pytest.approx(1012.0))
    assert reconcile(timing_of(overhead_us=350.0, hidden=False), CONTROL, None, CUDA).wall_us == pytest.approx(1010.0)
    assert reconcile(timing_of(), None, 0.0, CUDA) == ThreeClocks(1000.0)


def test_without_a_control_the_clocks_are_not_compared():
    check_times(timing_of(1.0, overhead_us=2700.0), CUDA, None, None)


def test_a_launch_that_was_not_hidden_may_show_the_harnesss_python_but_no_more():
    check_times(timing_of(overhead_us=350.0, hidden=False), CUDA, None, CONTROL)
    assert verdict_on(timing_of(overhead_us=350.0, hidden=True)).reason_code is ReasonCode.CLOCKS_DISAGREE
    assert verdict_on(timing_of(1.0, overhead_us=3000.0, hidden=False)).reason_code is ReasonCode.CLOCKS_DISAGREE


@pytest.mark.parametrize(("kind", "hidden"), [("cuda", False), ("cuda", True), ("cpu", None)])
def test_what_a_worker_says_of_the_hosts_time_explains_nothing(kind, hidden):
    lie = timing_of(1.0, overhead_us=30_000.0, host_us=30_000.0, hidden=hidden)
    assert verdict_on(lie, kind=kind).reason_code is ReasonCode.CLOCKS_DISAGREE


@pytest.mark.parametrize(("kind", "overhead_us", "status"), [
    ("cuda", 64.0, None), ("cuda", 66.0, "unsure"), ("cuda", 89.0, "unsure"), ("cuda", 91.0, "rejected"),
    ("cuda", 16.0, None), ("cuda", 14.0, "unsure"), ("cuda", -9.0, "unsure"), ("cuda", -34.0, "rejected"),
    ("cpu", 1500.0, None), ("cpu", 1600.0, "unsure"), ("cpu", 9000.0, "rejected"), ("cpu", -9000.0, "unsure"),
])
def test_wall_time_may_lie_a_little_apart_is_doubted_further_off_and_disbelieved_far_off(kind, overhead_us, status):
    timing = timing_of(1000.0, overhead_us=overhead_us)
    if status is None:
        check_times(timing, limits_of(kind), None, CONTROL)
    else:
        assert verdict_on(timing, kind=kind).status.value == status


def test_a_long_call_is_allowed_a_share_of_its_time():
    check_times(timing_of(46_000.0, overhead_us=900.0), CUDA, None, CONTROL)
    assert verdict_on(timing_of(46_000.0, overhead_us=2000.0)).reason_code is ReasonCode.CLOCKS_DISAGREE


# What a call of so many µs may have less than the harness's steps: before there was a share, with it, and with it around a
# control that could not be queued ahead; and what part of the call a flush gains that nobody sees: what is in 60 MB of L2 is
# 15 µs to read, the flush 77 µs to leave out.
LESS = [
    (16.0, 25.0, 25.0, 25.16), (100.0, 25.0, 25.0, 26.0), (1_000.0, 25.0, 25.0, 35.0), (2_500.0, 25.0, 25.0, 50.0),
    (7_000.0, 25.0, 70.0, 140.0), (8_000.0, 25.0, 80.0, 160.0), (15_000.0, 25.0, 150.0, 300.0),
    (30_000.0, 25.0, 300.0, 600.0), (80_000.0, 25.0, 800.0, 1_100.0),
]
L2_READ_US, FLUSH_US = 15.0, 77.0


@pytest.mark.parametrize(("time_us", "before_us", "gated_us", "ungated_us"), LESS)
def test_what_less_than_the_steps_is_allowed_is_a_share_of_a_long_call_and_gains_next_to_nothing(
    time_us, before_us, gated_us, ungated_us
):
    control = Control(overhead_us=400.0, ungated_overhead_us=380.0, baseline_us=time_us, synchronised_overhead_us=680.0)
    timing = timing_of(time_us, baseline_us=time_us)
    allowed = {True: gated_us, False: ungated_us}
    assert {held: replace(control, is_gated=held).less_us(timing, CUDA) for held in allowed} == pytest.approx(allowed)
    gained = {us: L2_READ_US / time_us if us >= FLUSH_US else 0.0 for us in (before_us, gated_us, ungated_us)}
    assert gained[before_us] == 0.0 and gained[gated_us] <= 0.002 and gained[ungated_us] <= 0.004


# The harness's own steps in µs; what they may seem shorter by; and what leaving out the flush, or a step that moves a tenth of
# the bytes, would take of them.
LONG_STEPS = [(400.0, 25.0), (3_000.0, 30.0), (7_600.0, 76.0), (7_800.0, 195.0), (16_000.0, 400.0), (60_000.0, 1_500.0)]


@pytest.mark.parametrize(("steps_us", "less_us"), LONG_STEPS)
def test_long_steps_may_seem_shorter_by_less_than_any_of_them_takes_but_the_flush(steps_us, less_us):
    control = Control(overhead_us=steps_us, ungated_overhead_us=None, baseline_us=1_000.0)
    allowed_us = control.less_us(timing_of(1_000.0, baseline_us=1_000.0), CUDA)
    assert allowed_us == pytest.approx(less_us)
    assert allowed_us < FLUSH_US or LESS_SHARE * steps_us >= FLUSH_US  # no flush is missed that was seen before
    if steps_us >= 1_000.0:
        assert allowed_us <= steps_us / 10 / 2


def test_on_a_cpu_and_for_more_than_the_steps_the_hundredth_stays():
    control = Control(overhead_us=16_000.0, ungated_overhead_us=None, baseline_us=1_000.0)
    assert control.steps_share_us == pytest.approx(160.0)
    assert control.less_us(timing_of(1_000.0, baseline_us=1_000.0), CPU) == pytest.approx(1_500.0)


def test_an_exact_copy_of_a_loop_of_thousands_of_kernels_is_neither_rejected_nor_doubted():
    """Of 30 ms it had 151 µs less than the control, which was `rejected`; of a call of 300 µs that still is."""
    control = Control(overhead_us=400.0, ungated_overhead_us=380.0, baseline_us=30_000.0, is_gated=False)
    timing = timing_of(30_000.0, overhead_us=229.0, hidden=False, baseline_us=30_000.0)
    assert control.unexplained_us(timing) == -151.0
    check_times(timing, CUDA, None, control)
    check_times(timing, CUDA, None, replace(control, is_gated=True))
    short = Control(overhead_us=400.0, ungated_overhead_us=380.0, baseline_us=300.0, is_gated=False)
    verdict = verdict_on(timing_of(300.0, overhead_us=229.0, hidden=False, baseline_us=300.0), control=short)
    assert verdict.status is Status.REJECTED


@pytest.mark.parametrize(("overhead_us", "is_gated", "status"), [
    (90.0, True, Status.UNSURE), (-260.0, True, Status.REJECTED), (-260.0, False, Status.UNSURE),
])
def test_more_than_that_is_doubted_and_blamed_only_where_it_is_known_what_steps_take_without_the_host(
    overhead_us, is_gated, status
):
    control = Control(overhead_us=400.0, ungated_overhead_us=400.0, baseline_us=30_000.0, is_gated=is_gated)
    assert verdict_on(timing_of(30_000.0, overhead_us=overhead_us), control=control).status is status


def test_a_doubt_about_launches_that_could_not_be_queued_ahead_accuses_nobody():
    control = Control(overhead_us=400.0, ungated_overhead_us=400.0, baseline_us=8_000.0, is_gated=False)
    held, ungated = (
        verdict_on(timing_of(8_000.0, overhead_us=650.0, hidden=hidden), control=control) for hidden in (True, False)
    )
    assert "work was done outside the timed window" in held.reason
    assert ungated.status is Status.UNSURE and "outside" not in ungated.reason and "left out" not in ungated.reason


def test_two_controls_of_a_long_call_differ_by_a_share_of_it():
    first, second = (Control(us, None, 30_000.0) for us in (700.0, 420.0))
    assert not first.allows_more_than(second, CUDA)
    assert replace(first, overhead_us=730.0).allows_more_than(second, CUDA)
    assert Control(70.0, None, 1_000.0).allows_more_than(Control(40.0, None, 1_000.0), CUDA)


@pytest.mark.parametrize(("tail_us", "status"), [(15_900.0, None), (20_000.0, Status.UNSURE), (33_000.0, Status.REJECTED)])
def test_a_report_that_is_late_by_what_is_just_doubted_of_a_long_segment_is_not_blamed_at_once(tail_us, status):
    """Segments of two calls of 160 ms may be 16 ms late, which is more than what a short one is blamed for."""
    timing = timing_of(160_000.0, baseline_us=160_000.0)
    timing.tails_us, timing.launches_per_segment = [tail_us] * 5, 2
    control = Control(overhead_us=40.0, ungated_overhead_us=340.0, baseline_us=160_000.0, tail_us=0.0)
    if status is None:
        check_times(timing, CUDA, None, control)
    else:
        assert verdict_on(timing, control=control).status is status


@pytest.mark.parametrize(("tail_us", "status"), [
    (400.0, None), (690.0, None), (710.0, Status.UNSURE), (8300.0, Status.UNSURE), (8500.0, Status.REJECTED),
])
def test_work_left_for_the_end_of_a_segment_makes_its_report_late(tail_us, status):
    timing = timing_of(15.0)
    timing.tails_us, timing.launches_per_segment = [tail_us] * 5, 41
    control = Control(overhead_us=40.0, ungated_overhead_us=340.0, baseline_us=1000.0, tail_us=400.0)
    if status is None:
        check_times(timing, CUDA, None, control)
    else:
        verdict = verdict_on(timing, control=control)
        assert verdict.status is status
        assert "work was left for the end" in verdict.reason


@pytest.mark.parametrize(("overhead_us", "status"), [
    (-20.0, Status.REJECTED), (10.0, Status.UNSURE), (40.0, None), (260.0, None), (440.0, None), (460.0, None),
    (480.0, Status.UNSURE), (1400.0, Status.UNSURE), (1500.0, Status.REJECTED),
])
def test_a_queue_that_is_not_held_runs_ahead_of_the_device_or_waits_for_it_or_does_a_part_of_that(overhead_us, status):
    """A call of 390 µs that waits for the device took 97 µs more around it than a control that ran ahead, and one of 42 µs
    88 less than two controls that were not gated.
    """
    control = Control(overhead_us=40.0, ungated_overhead_us=320.0, baseline_us=390.0, synchronised_overhead_us=440.0)
    timing = timing_of(390.0, overhead_us=overhead_us)
    assert control.unexplained_us(timing) == overhead_us - 40.0
    timing.launch_hidden = False
    if status is None:
        check_times(timing, CUDA, None, control)
    else:
        assert verdict_on(timing, control=control).status is status


@pytest.mark.parametrize(("overhead_us", "status"), [(200.0, None), (190.0, Status.UNSURE), (300.0, Status.REJECTED)])
def test_the_least_that_steps_take_is_what_they_took_around_any_baseline(overhead_us, status):
    """Around a control that was timed as the harness started they may take longer; the most is what they took there."""
    control = Control(overhead_us=240.0, ungated_overhead_us=None, baseline_us=1000.0)
    for seen_us in (222.0, 400.0):
        control = control.and_baseline(timing_of(overhead_us=seen_us))
    if status is None:
        check_times(timing_of(overhead_us=overhead_us), CUDA, None, control)
    else:
        assert verdict_on(timing_of(overhead_us=overhead_us), control=control).status is status
    assert control.and_baseline(Timing()) is control


@pytest.mark.parametrize(("overhead_us", "status"), [(198.0, None), (196.0, Status.UNSURE), (145.0, Status.REJECTED)])
def test_what_another_baseline_showed_of_the_steps_around_a_long_control_counts_once(overhead_us, status):
    control = Control(255.0, None, 7000.0, others_us=(222.0,))
    timing = timing_of(200.0, overhead_us=overhead_us, baseline_us=7000.0)
    if status is None:
        check_times(timing, CUDA, None, control)
    else:
        assert verdict_on(timing, control=control).status is status


def test_a_flush_left_out_is_told_from_work_left_outside():
    verdict = verdict_on(timing_of(1000.0, overhead_us=40.0 - 74.0))
    assert "steps around it took 74.0 µs less than they must" in verdict.reason


@pytest.mark.parametrize(("apart_us", "status"), [
    (-270.0, None), (-280.0, "unsure"), (-560.0, "rejected"), (105.0, None), (150.0, "unsure"), (300.0, "rejected"),
])
def test_around_a_call_of_gigabytes_the_harness_s_own_steps_may_differ_by_a_share_of_themselves(apart_us, status):
    steps_us, call_us = 11_000.0, 4270.0
    timing = timing_of(call_us, overhead_us=steps_us + apart_us, baseline_us=call_us)
    control = Control(steps_us, None, call_us)
    if status is None:
        check_times(timing, CUDA, None, control)
        return
    with pytest.raises(Failed) as caught:
        check_times(timing, CUDA, None, control)
    assert caught.value.verdict.status.value == status


@pytest.mark.parametrize(("control_us", "kind", "less_us", "status"), [
    (1000.0, "cuda", 24.0, None), (1000.0, "cuda", 26.0, Status.UNSURE), (1000.0, "cuda", 51.0, Status.REJECTED),
    (8000.0, "cuda", 52.0, None), (8000.0, "cuda", 54.0, Status.UNSURE), (8000.0, "cuda", 107.0, Status.REJECTED),
    (90_000.0, "cuda", 64.0, None), (90_000.0, "cuda", 66.0, Status.UNSURE), (90_000.0, "cuda", 155.0, Status.REJECTED),
    (90_000.0, "cpu", 1499.0, None), (90_000.0, "cpu", 1501.0, Status.UNSURE),
])
def test_steps_around_a_longer_control_take_longer_by_so_much_and_no_more(control_us, kind, less_us, status):
    timing = timing_of(1000.0, overhead_us=2000.0 - less_us, baseline_us=control_us)
    control = Control(overhead_us=2000.0, ungated_overhead_us=2000.0, baseline_us=control_us)
    if status is None:
        check_times(timing, limits_of(kind), None, control)
    else:
        assert verdict_on(timing, kind=kind, control=control).status is status


@pytest.mark.parametrize(("less_us", "kind", "off_us"), [
    (10.0, "cuda", 0.0), (40.0, "cuda", 0.0), (60.0, "cuda", -20.0), (-60.0, "cuda", 60.0), (40.0, "cpu", -40.0),
])
def test_what_a_longer_control_explains_is_no_disagreement_of_the_clocks(less_us, kind, off_us):
    timing = timing_of(300.0, overhead_us=2000.0 - less_us, baseline_us=46_000.0)
    control = Control(overhead_us=2000.0, ungated_overhead_us=2000.0, baseline_us=46_000.0)
    assert reconcile(timing, control, None, limits_of(kind)).wall_us == pytest.approx(300.0 + off_us)


@pytest.mark.parametrize(("call_us", "kind", "more_us", "status"), [
    (1000.0, "cuda", 34.0, None), (1000.0, "cuda", 36.0, Status.UNSURE), (1000.0, "cuda", 59.0, Status.UNSURE),
    (1000.0, "cuda", 61.0, Status.REJECTED), (200.0, "cuda", 28.0, None), (200.0, "cuda", 30.0, Status.UNSURE),
    (99.0, "cuda", 24.0, None), (99.0, "cuda", 26.0, Status.UNSURE), (10_000.0, "cuda", 199.0, None),
    (10_000.0, "cuda", 201.0, Status.UNSURE), (1000.0, "cpu", 1501.0, Status.UNSURE),
])
def test_steps_around_a_call_that_is_longer_than_the_controls_take_longer_by_so_much(call_us, kind, more_us, status):
    control = Control(overhead_us=40.0, ungated_overhead_us=40.0, baseline_us=100.0)
    timing = timing_of(call_us, overhead_us=40.0 + more_us, baseline_us=100.0)
    if status is None:
        check_times(timing, limits_of(kind), None, control)
    else:
        assert verdict_on(timing, kind=kind, control=control).status is status


@pytest.mark.parametrize(
    ("flush_us", "status"),
    [(20_000.0, None), (24_900.0, None), (15_100.0, None), (25_500.0, Status.UNSURE), (14_500.0, Status.UNSURE),
     (39_000.0, Status.UNSURE), (41_000.0, Status.REJECTED), (1.0, Status.UNSURE)],
)
def test_on_a_cpu_what_passes_before_a_window_opens_is_held_against_the_controls(flush_us, status):
    control = Control(500.0, None, 1000.0, flush_us=20_000.0)
    timing = timing_of(1000.0, overhead_us=500.0, hidden=None)
    timing.flush_us = [flush_us] * 20
    if status is None:
        check_times(timing, CPU, None, control)
    else:
        verdict = verdict_on(timing, kind="cpu", control=control)
        assert verdict.status is status
        assert f"{abs(flush_us - 20_000.0):.1f} µs {'more' if flush_us > 20_000.0 else 'less'} passed" in verdict.reason


@pytest.mark.parametrize(("paused", "status"), [(8, Status.UNSURE), (16, Status.REJECTED)])
@pytest.mark.parametrize("name", ["flush_us", "wall_less_time_us"])
def test_pauses_that_fall_on_some_launches_of_a_busy_cpu_are_a_doubt_and_in_most_launches_a_lie(name, paused, status):
    """With six processes at work on two cores an honest call had 24.7 ms more before its window in the mean."""
    control = Control(500.0, None, 1000.0, flush_us=5_000.0)
    timing = timing_of(1000.0, overhead_us=500.0, hidden=None)
    timing.flush_us = [5_000.0] * 20
    setattr(timing, name, [60_000.0] * paused + getattr(timing, name)[paused:])
    assert verdict_on(timing, kind="cpu", control=control).status is status


def test_a_worker_on_a_cpu_cannot_hide_work_behind_the_noise_of_its_flush():
    control = Control(500.0, None, 1000.0, flush_us=20_000.0)
    timing = timing_of(1000.0, overhead_us=2100.0, hidden=None)
    timing.flush_us = [20_000.0] * 20
    assert verdict_on(timing, kind="cpu", control=control).status is Status.UNSURE


def test_a_control_renewed_while_the_machine_was_disturbed_makes_no_liar_of_an_honest_call():
    """The steps took 940 µs around the renewed control, and 250 around the one before and around the call."""
    before = Control(overhead_us=250.0, ungated_overhead_us=None, baseline_us=13_800.0)
    renewed = before.renewed(timing_of(13_800.0, overhead_us=940.0))
    assert renewed.overhead_us == 940.0
    check_times(timing_of(13_800.0, overhead_us=254.0, baseline_us=13_800.0), CUDA, None, renewed)
    left_out = timing_of(13_800.0, overhead_us=-100.0, baseline_us=13_800.0)
    assert verdict_on(left_out, control=renewed).status is Status.REJECTED
