"""How often an entry is tried and what its attempts amount to, over a fake device: doubts, the control's renewal, budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_worker import PRODUCT, SETTINGS, Script

from harness.model.verdict import ReasonCode, Status
from harness.results.ranking import rank

# What one attempt comes to: sound, in doubt beside the control, rejected beside it, and rejected whatever the control
# left.
PLAYS = {
    "c": Script(), "d": Script(beyond_us=40.0), "r": Script(beyond_us=400.0), "x": Script(flush_fault="7 words were missed"),
}
ENDS = {"c": Status.OK, "d": Status.UNSURE, "r": Status.REJECTED, "x": Status.REJECTED}


@pytest.fixture
def played(fake_run):
    """`tried(scripts, …)`: (run, row of "mine") where its workers follow these scripts, and then the last of them."""

    def make(scripts, **how):
        run = fake_run(scripts={"mine": scripts, **how.pop("others", {})}, **how)
        run.device_run.run([run.candidate("mine")])
        return run, run.rows["mine"]

    return make


@pytest.mark.parametrize(("attempts", "ends"), [
    ("dd", "d"), ("dcc", "c"), ("dcd", "d"), ("dx", "x"), ("dcx", "x"), ("c", "c"), ("x", "x"),
    ("rr", "r"), ("rcc", "c"), ("rd", "d"), ("rcd", "d"), ("rcr", "r"),
])
def test_of_doubted_clocks_two_looks_of_three_decide_with_the_control_timed_anew(played, attempts, ends):
    """What is rejected beside a control that was timed once is such a doubt; what needs no control is certain."""
    run, row = played([PLAYS[each] for each in attempts] + [Script(loads=pytest.fail)])
    assert row.status is ENDS[ends]
    renewals = ["eager"] if len(attempts) > 1 else []
    assert run.started == ["eager", "mine", *renewals, *["mine"] * (len(attempts) - 1)]


@pytest.mark.parametrize(("higher_us", "renewals"), [(0.0, 1), (20.0, 1), (30.0, 2)])
def test_beside_a_renewed_control_that_allows_more_than_the_one_before_the_second_look_has_another(
    played, higher_us, renewals
):
    """It may be that one which was disturbed, and both looks would pass beside it."""
    control = [Script(), Script(steps_us=220.0 + higher_us), Script(steps_us=220.0)]
    run, row = played([PLAYS["d"], replace(PLAYS["c"], steps_us=220.0 + higher_us), PLAYS["c"]], others={"eager": control})
    assert row.status is Status.OK and run.started.count("eager") == 1 + renewals


def raises():
    raise RuntimeError("no more memory")


@pytest.mark.parametrize(("renewed", "status"), [(Script(loads=raises), Status.UNSURE), (Script(), Status.OK)])
def test_without_a_control_one_is_made_and_where_there_is_none_nothing_is_ok(played, renewed, status):
    """Eager's own row fails by a fault of ours, and it is timed once more for its clocks alone."""
    run, row = played([Script()], others={"eager": [Script(loads=raises), renewed]})
    assert run.rows["eager"].status is Status.HARNESS_ERROR and row.status is status
    assert run.started == ["eager", "eager", "mine"]
    if status is Status.UNSURE:
        assert row.reason_code is ReasonCode.NOISY and "eager itself could not be timed" in row.reason


def test_a_control_that_could_not_be_timed_again_leaves_the_clocks_of_before(played):
    run, row = played([PLAYS["d"], PLAYS["d"]], others={"eager": [Script(), Script(loads=raises)]})
    assert row.status is Status.UNSURE and run.started == ["eager", "mine", "eager", "mine"]


@pytest.mark.parametrize(("second", "players"), [
    (Script(16.0, in_worker_us=17.3), 2), (Script(16.0), 2), (None, 1),
])
def test_one_in_whose_process_eager_is_another_is_judged_in_one_more_and_that_counts(played, second, players):
    """As 4 of 95 workers of a call of 16 µs on an H200: apart from the judge's by more than a microsecond."""
    first = Script(16.0, in_worker_us=None if second is None else 17.3)
    run, row = played([first, second or first, Script(loads=pytest.fail)][: players + 1], eager_us=16.0)
    assert row.status is Status.OK and run.started.count("mine") == players


@pytest.mark.parametrize(("inside", "players"), [("late", 2), ("raises", 1)])
def test_one_whose_eager_was_late_in_its_process_is_judged_in_one_more(played, inside, players):
    """What cannot be loaded will not be in the next one either."""
    run, row = played([Script(16.0, inside=inside), Script(16.0)], eager_us=16.0)
    assert row.status is Status.OK and run.started.count("mine") == players


@pytest.mark.parametrize(("control_us", "word", "is_told"), [(1000.0, "FASTER", 0), (1035.0, "UNSURE", 1), (1010.0, "FASTER", 0)])
def test_what_the_control_is_off_itself_is_nobodys_gain_and_that_is_told(played, control_us, word, is_told):
    """Eager was 3.5 % slower than itself beside the control, and its exact copy 3.2 % faster (InstanceNorm on an H100)."""
    run, row = played([Script(969.0)], others={"eager": Script(control_us)})
    assert (row.status, row.call) == (Status.OK, word)
    assert (row.warnings or "").count("off one by a factor of 1.035") == is_told
    eager = run.rows["eager"]
    assert eager.call == ("SAME" if control_us == 1000.0 else "UNSURE"), "it is never faster or slower than itself"
    assert ("× itself" in (eager.warnings or "")) is (control_us != 1000.0)


@pytest.mark.parametrize(("hot_of", "status"), [((0, 3), Status.OK), ((2, 3), Status.UNSURE), ((3, 3), Status.UNSURE)])
def test_more_dropped_rounds_than_kept_ones_are_unsure(fake_run, hot_of, status):
    run, readings = fake_run(settings=replace(SETTINGS, budget_s=0.5)), []

    def throttle():
        readings.append(1)
        return "hw_thermal" if len(readings) % hot_of[1] < hot_of[0] else ""

    run.device_run.run([])
    run.backend.throttle = throttle
    run.device_run.judge_alone(run.candidate("mine"), run.build_pool, "2026-05-01T00:00:01Z")
    row = run.rows["mine"]
    assert row.status is status
    assert (row.reason_code is ReasonCode.THROTTLED) is (status is Status.UNSURE)
    if status is Status.UNSURE:
        assert "rounds were dropped" in row.reason


def test_where_a_few_calls_were_enough_one_process_is(played):
    run, row = played([Script(2e6)], settings=replace(SETTINGS, players=5, launch_timeout_s=100.0))
    assert (row.status, row.call) == (Status.OK, "SLOWER")
    assert run.started.count("mine") == 1 and run.started.count("eager") == 5


@pytest.mark.parametrize(("budget_s", "looks"), [(1e6, 2), (0.0, 1)])
def test_nothing_is_begun_anew_once_the_budget_of_the_row_is_spent(played, fake_clock, budget_s, looks):
    def pauses(call):
        fake_clock.sleep(100.0 if call == 39 else 0.0)
        return 1000.0

    run, row = played(replace(PLAYS["d"], time_us=pauses), settings=replace(SETTINGS, row_budget_s=budget_s, launch_timeout_s=1e3))
    assert row.status is Status.UNSURE and run.started.count("mine") == looks


@pytest.mark.parametrize(("first", "workers", "status"), [("d", 1, Status.UNSURE), ("c", 3, Status.OK)])
def test_a_budget_that_ends_in_another_look_takes_no_verdict_back(played, fake_clock, first, workers, status):
    late = Script(loads=lambda: fake_clock.sleep(1e6))
    run, row = played([PLAYS[first], late], settings=replace(SETTINGS, players=workers))
    assert run.started.count("mine") == 2 and row.status is status


def test_the_time_in_which_the_control_is_renewed_is_not_the_candidates(played, fake_clock):
    slow = Script(loads=lambda: fake_clock.sleep(1e6))
    run, row = played([PLAYS["d"], PLAYS["c"]], others={"eager": [Script(), slow]})
    assert row.status is Status.OK and run.started == ["eager", "mine", "eager", "mine", "mine"]


@pytest.mark.parametrize(("seconds", "status"), [(500.0, Status.OK), (2000.0, Status.TIMED_OUT)])
def test_what_takes_eager_itself_long_takes_candidates_long_too(played, fake_clock, seconds, status):
    eager, mine = (Script(loads=lambda s=s: fake_clock.sleep(s)) for s in (100.0, seconds))
    _, row = played(mine, others={"eager": eager}, settings=replace(SETTINGS, row_budget_s=1.0))
    assert row.status is status
    assert (row.reason_code is ReasonCode.ROW_TIMEOUT) is (status is Status.TIMED_OUT)


@pytest.mark.parametrize(("kind", "language", "status"), [
    ("cuda", "cpp", Status.SKIPPED), ("cuda", "cuda", Status.INCORRECT), ("cpu", "cpp", Status.INCORRECT),
])
def test_cpp_that_refuses_cuda_tensors_is_for_another_device(fake_run, kind, language, status):
    run = fake_run(kind=kind, scripts={"mine": Script(raises="A must be on the CPU")})
    run.device_run.run([replace(run.candidate("mine"), language=language)])
    assert run.rows["mine"].status is status


@pytest.mark.parametrize(("compilers", "status"), [((), Status.SKIPPED), (("g++",), Status.INCORRECT)])
def test_who_raises_for_want_of_a_compiler_is_skipped_where_the_machine_has_none(
    played, monkeypatch, tmp_path, compilers, status
):
    for name in compilers:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    _, row = played(Script(raises="InvalidCxxCompiler: No working C++ compiler found"))
    assert row.status is status
    if status is Status.SKIPPED:
        assert row.reason_code is ReasonCode.NO_CXX and "apt install g++" in row.reason


@pytest.mark.parametrize(("kind", "language", "ending", "status"), [
    ("cpu", "cuda", "", Status.SKIPPED),
    ("cpu", "torch", "PROPERTIES = torch.cuda.is_available()", Status.SKIPPED),
    ("cpu", "torch", "", Status.INCORRECT),
    ("cuda", "cuda", "", Status.INCORRECT),
])
def test_what_lacks_what_it_left_out_of_its_import_without_a_gpu_is_not_wrong_there(
    fake_run, kind, language, ending, status
):
    run = fake_run(kind=kind, scripts={"mine": Script(raises="'NoneType' object has no attribute 'f'")})
    mine = run.candidate("mine", f"{PRODUCT}\nModelNew = Model\n{ending}\n")
    run.device_run.run([replace(mine, language=language)])
    assert run.rows["mine"].status is status
    assert ("it needs a GPU, and there is none here" in run.rows["mine"].reason) is (status is Status.SKIPPED)


def test_a_baseline_that_asks_for_a_gpu_where_there_is_none_is_wrong(fake_run):
    words = "Found no NVIDIA driver on your system"
    run = fake_run(kind="cpu", scripts={"eager": Script(raises=words), "mine": Script(raises=words)})
    run.device_run.run([run.candidate("mine")])
    assert [row.status for row in run.rows.all] == [Status.INCORRECT, Status.SKIPPED]


@pytest.mark.parametrize("workers", [1, 3])
def test_a_lie_that_is_too_small_to_be_refused_gains_neither_rank_nor_word(fake_run, workers):
    """A copy of eager's 100 µs says 80, and an honest one says what it takes, 90."""
    lies = Script(80.0, beyond_us=20.0)
    run = fake_run(
        scripts={"mine": lies, "honest": Script(90.0)}, eager_us=100.0, settings=replace(SETTINGS, players=workers)
    )
    run.device_run.run([run.candidate("mine"), run.candidate("honest")])
    lying, honest = run.rows["mine"], run.rows["honest"]
    assert (lying.status, honest.status) == (Status.OK, Status.OK)
    assert lying.speedup == pytest.approx(1.25) and lying.speedup_lo < 1.005 and lying.call == "UNSURE"
    assert honest.unvouched_us == 0.0 and honest.call == "FASTER"
    assert lying.unvouched_us == pytest.approx(20.0, abs=0.5) and "unvouched_us" in lying.warnings
    assert [each.candidate for each in rank([lying, honest], ("custom",), lying.precision_class)] == ["honest", "mine"]
