"""When a change between two runs on one device is called one, by what, and what is kept apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.results.changes import Change, change_between, pairs_of
from harness.results.joined_runs import join
from harness.results.result_files import ResultFile


@pytest.fixture
def timed(make_record):
    """A record with a speedup, ± `half` of itself, and the time that goes with it over a baseline of 2 ms."""

    def make(speedup=1.0, half=0.0003, **changes):
        figures = {"speedup": speedup, "speedup_lo": speedup * (1 - half), "speedup_hi": speedup * (1 + half),
                   "time_us": 2000 / speedup, "baseline_us": 2000.0, "uuid": "GPU-1", "source_hash": "aa"}
        return make_record(**(figures | changes))

    return make


@pytest.mark.parametrize(
    ("now", "verdict", "reason"),
    [
        (1.01, "FASTER", "all above +0.1 %"), (0.99, "SLOWER", "all below −0.1 %"),
        (1.0001, "SAME", "all within ±0.1 %"), (1.001, "UNSURE", "across +0.1 %"),
    ],
)
def test_the_whole_interval_decides_against_the_margin_of_the_duration(timed, now, verdict, reason):
    change = change_between(timed(), timed(now))
    assert (change.verdict, change.reason) == (verdict, reason)
    assert change.ratio.estimate == pytest.approx(now) and change.basis == "speedup"


def test_short_calls_have_a_wider_margin(timed):
    assert change_between(timed(time_us=20.0), timed(1.003, time_us=20.0)).verdict == "SAME"
    assert change_between(timed(), timed(1.003)).verdict == "FASTER"


def test_a_control_that_was_off_widens_the_margin(timed):
    control = timed(0.98, role="baseline", candidate="eager", source_hash=None)
    change = change_between(timed(), timed(1.01), [control, None])
    assert (change.verdict, change.margin_from, change.margin) == ("SAME", "control", pytest.approx(0.02))


def test_a_machine_that_slowed_down_changes_times_and_no_speedup(timed):
    slow = timed(1.0, time_us=2060.0, canary_gbps=3880.0, bound_by="memory")
    change = change_between(timed(canary_gbps=4000.0, bound_by="memory"), slow)
    assert change.verdict == "SAME"
    assert change.time_ratio == pytest.approx(1.03) and change.drift == pytest.approx(4000 / 3880)


def test_with_another_torch_the_times_decide_corrected_by_the_canary(timed):
    old = timed(torch="2.11.0", bound_by="memory", canary_gbps=4000.0)
    # eager got 10 % faster with the new torch, the candidate did not: its speedup fell, its time did not
    new = timed(0.9, torch="2.13.0", bound_by="memory", canary_gbps=4000.0, time_us=2000.0)
    change = change_between(old, new)
    assert (change.verdict, change.basis, change.margin_from) == ("SAME", "time", "canary")
    drifted = timed(0.9, torch="2.13.0", bound_by="memory", canary_gbps=3600.0, time_us=2000 / 0.9)
    assert change_between(old, drifted).verdict == "SAME"
    slower = timed(0.8, torch="2.13.0", bound_by="memory", canary_gbps=4000.0, time_us=2100.0)
    assert change_between(old, slower).verdict == "SLOWER"


def test_where_arithmetic_is_the_limit_the_sm_clock_is_the_canary_for_want_of_a_better(timed):
    old = timed(torch="2.11.0", bound_by="compute", sm_mhz=1980.0)
    new = timed(1.0, torch="2.13.0", bound_by="compute", sm_mhz=1782.0, time_us=2000 / 0.9)
    assert change_between(old, new).verdict == "SAME"


def test_where_arithmetic_is_the_limit_the_rate_of_multiply_adds_goes_before_the_clock(timed):
    old = timed(torch="2.11.0", bound_by="compute", sm_mhz=1980.0, canary_tflops=60.0)
    new = timed(
        1.0, torch="2.13.0", bound_by="compute", sm_mhz=1980.0, canary_tflops=54.0, canary_gbps=4000.0, time_us=2000 / 0.9
    )
    change = change_between(old, new)
    assert (change.verdict, change.basis) == ("SAME", "time") and change.drift == pytest.approx(60 / 54)


def test_with_another_torch_and_no_canary_nothing_is_said(timed):
    change = change_between(timed(torch="2.11.0"), timed(1.5, torch="2.13.0"))
    assert change.verdict == "UNSURE" and "without a canary" in change.reason and change.ratio is None


def test_without_an_interval_it_is_unsure_and_says_where(timed):
    change = change_between(timed(), timed(speedup_lo=None))
    assert (change.verdict, change.reason) == ("UNSURE", "no interval in the newer run")


def test_launches_hidden_in_one_run_only_are_not_compared(timed):
    change = change_between(timed(launch_hidden=True), timed(1.5, launch_hidden=False))
    assert change.verdict == "UNSURE" and change.reason.startswith("launch_hidden is true in the older")


def test_what_was_ok_and_is_wrong_is_lost_and_the_reverse_is_won(timed, make_record):
    bad = make_record(status="crashed", reason_code="signal", reason="SIGSEGV")
    assert change_between(timed(), bad).verdict == "LOST"
    assert change_between(bad, timed()).verdict == "WON"
    assert change_between(bad, bad).verdict == "" and change_between(None, bad).verdict == ""


def test_not_having_been_run_is_no_loss(timed, make_record):
    skipped = make_record(status="skipped", reason_code="no_gpu", reason="no GPU here")
    assert change_between(timed(), skipped).verdict == ""


def test_having_been_checked_without_its_device_is_neither_loss_nor_gain(timed, make_record):
    checked = make_record(status="checked", reason_code="interpreted", reason="right at M=31")
    assert change_between(timed(), checked) == Change("", "ok, then checked")
    assert change_between(checked, timed()).verdict == ""


def test_the_interval_that_is_too_wide_by_itself_is_named(timed):
    assert change_between(timed(half=0.01), timed(1.001)).too_wide == ("older",)


def runs_of(*records):
    return [ResultFile(Path(f"{number}.csv"), (record,)) for number, record in enumerate(records)]


def test_each_run_is_set_against_the_first_of_its_own_device(timed):
    runs = runs_of(timed(), timed(uuid="GPU-2"), timed(1.1), timed(1.2, uuid="GPU-2"))
    assert [(pair.reference, pair.run) for pair in pairs_of(join(runs))] == [(0, 2), (1, 3)]


def test_gpus_without_a_uuid_are_never_the_same_one(timed):
    assert pairs_of(join(runs_of(timed(uuid=None), timed(uuid=None)))) == []


def test_cpus_are_the_same_by_name_cores_and_memory(timed):
    cpu = {"device_kind": "cpu", "device_name": "AMD EPYC", "uuid": None, "sm_count": 2, "memory_bytes": 8}
    assert len(pairs_of(join(runs_of(timed(**cpu), timed(**cpu))))) == 1
    assert pairs_of(join(runs_of(timed(**cpu), timed(**cpu | {"sm_count": 4})))) == []


def test_different_methods_are_kept_apart_until_forced(timed):
    joined = join(runs_of(timed(l2_policy="cold"), timed(1.2, l2_policy="warm")))
    [refused] = pairs_of(joined)
    assert refused.changes == () and refused.refused == (("l2_policy", "cold", "warm"),)
    [forced] = pairs_of(joined, force=True)
    assert [change.verdict for _, change in forced.changes] == ["FASTER"]


def test_the_mean_of_a_pair_is_over_candidates_that_have_figures_in_both(timed):
    others = [timed(1.21, candidate="b", source_hash="bb"), timed(1.0, candidate="c", source_hash="cc")]
    [pair] = pairs_of(join([
        ResultFile(Path("a.csv"), (timed(), timed(candidate="b", source_hash="bb"))), ResultFile(Path("b.csv"), (timed(), *others)),
    ]))
    assert pair.mean_of == 2 and pair.mean.estimate == pytest.approx(1.1)
