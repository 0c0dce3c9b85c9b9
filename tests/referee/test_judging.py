"""What heat and dropped rounds do to a judgement, and what a failure leaves of one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.referee.checking import decide
from harness.referee.control import Control
from harness.referee import failures
from harness.referee.failures import Failed, failed
from harness.referee.judgement import Contestant, Judgement
from harness.referee.judging import Judge
from harness.referee.timed import Timing
from harness.referee.turns import LATE
from harness.statistics import Interval, call
from harness.verdict import OK, ReasonCode, Status

CONTROL = Control(overhead_us=40.0, unheld_overhead_us=340.0, baseline_us=1000.0)
REFERENCE = SimpleNamespace(truth_name="float64", terms=16.0, memory=None)


def device(kind):
    return SimpleNamespace(kind=kind, peak_bytes=lambda: None)


def contestant_of(**changes) -> Contestant:
    plain = Contestant(
        name="tiled", path="/c/tiled.py", manifest={}, extensions=(), triton_cache=None, precision_class="fp32",
        language="torch",
    )
    return replace(plain, **changes)


def timing_of(*, dropped=0, rounds=10) -> Timing:
    timing = Timing(
        candidate_us=[1000.0] * 20, baseline_us=[1000.0] * 20, log_ratios=[0.0] * rounds, dropped=dropped,
    )
    timing.speedup = Interval(1.0, 0.999, 1.001) if rounds > 1 else None
    timing.word = "SAME" if rounds > 1 else None
    return timing


def short_timing_of(*, apart):
    """Of a call of 16 µs, over a baseline that took so much longer in its process, relative, than in the referee's."""
    timing = timing_of()
    timing.candidate_us = timing.baseline_us = [16.0] * 20
    timing.inside_log_ratios = [apart] * len(timing.log_ratios)
    return timing


@pytest.fixture
def judge_of(settings):
    """`judge_of(timing, …)`: the judgement where loading and checking went well and timing gave `timing`."""

    def make(
        timing, *, kind="cuda", checking=None, renew=None, control=CONTROL, tell=lambda text: None, **changes
    ) -> Judgement:
        judge = Judge(device(kind), [REFERENCE], settings, None, 1)
        judge.renew, judge.control, make.judge = renew, control, judge
        stopped = []

        def play(contestant, start, judgement, control, tell, *, first):
            failure = checking() if callable(checking) else checking
            if failure is not None:
                raise failure
            judgement.timings.append(next(timing) if isinstance(timing, Iterator) else timing)

        judge._play = play
        judgement = judge.judge(contestant_of(**changes), [lambda: stopped], tell)
        return judgement

    return make


def code(judgement):
    return judgement.verdict.status, judgement.verdict.reason_code


def test_a_sound_timing_is_ok_and_its_speedup_the_judgements(judge_of):
    judgement = judge_of(timing_of())
    assert judgement.verdict == OK
    assert judgement.speedup == Interval(1.0, 0.999, 1.001)
    assert judgement.word == "SAME"


@pytest.mark.parametrize(
    ("dropped", "rounds", "status"), [(5, 10, Status.OK), (11, 10, Status.UNSURE), (20, 0, Status.UNSURE)]
)
def test_more_dropped_rounds_than_kept_ones_are_unsure(judge_of, dropped, rounds, status):
    judgement = judge_of(timing_of(dropped=dropped, rounds=rounds))
    assert judgement.verdict.status is status
    if status is Status.UNSURE:
        assert f"{dropped} of {dropped + rounds} rounds" in judgement.verdict.reason


@pytest.mark.parametrize("second", [0.0, 0.08])
def test_one_in_whose_process_eager_is_another_is_judged_in_one_more_and_that_counts(judge_of, second):
    """As 4 of 95 players of a call of 16 µs on an H200: apart from the referee's by more than a microsecond."""
    timings = [short_timing_of(apart=0.08), short_timing_of(apart=second), short_timing_of(apart=0.0)]
    coming = iter(timings)
    judgement = judge_of(coming)
    assert judgement.verdict == OK and judgement.timings == [timings[1]]
    assert next(coming) is timings[2], "not a third time"


@pytest.mark.parametrize(("fault", "players"), [(LATE, 2), ("it cannot be loaded there", 1)])
def test_one_whose_eager_was_late_in_its_process_is_judged_in_one_more(judge_of, fault, players):
    """What cannot be loaded will not be in the next one either."""
    missing = short_timing_of(apart=0.0)
    missing.wants_inside, missing.inside_log_ratios, missing.inside_fault = True, [], fault
    timings = [missing, short_timing_of(apart=0.0), timing_of()]
    coming = iter(timings)
    assert judge_of(coming).timings == [timings[players - 1]] and next(coming) is timings[players]


def test_one_in_whose_process_eager_is_as_in_the_referees_is_judged_once(judge_of):
    timings = [short_timing_of(apart=0.03), short_timing_of(apart=0.0)]
    coming = iter(timings)
    assert judge_of(coming).timings == [timings[0]] and next(coming) is timings[1]


@pytest.mark.parametrize(("apart", "word"), [(0.0, "FASTER"), (0.035, "UNSURE"), (0.01, "FASTER")])
def test_what_the_control_is_off_itself_is_nobodys_gain_and_that_is_told(judge_of, apart, word):
    """Eager was 3.5 % faster than itself beside the control, and its exact copy 3.2 % slower (InstanceNorm on an H100)."""
    timing = timing_of()
    timing.speedup, timing.control_apart = Interval(1.032, 1.03, 1.034), apart
    timing.word = call(timing.speedup, 1000.0, apart)
    judgement = judge_of(timing)
    assert (judgement.verdict, judgement.word) == (OK, word)
    assert any("1.035 times" in warning for warning in judgement.warnings) == (word == "UNSURE")


@pytest.mark.parametrize(("lo", "hi", "word", "is_told"), [
    (0.3, 0.9, "UNSURE", True), (1.01, 1.03, "UNSURE", True), (0.9995, 1.0005, "SAME", False), (0.99, 1.01, "UNSURE", False),
])
def test_the_control_is_never_faster_or_slower_than_itself(judge_of, lo, hi, word, is_told):
    timing = timing_of()
    timing.speedup = Interval((lo + hi) / 2, lo, hi)
    timing.word = call(timing.speedup, 1000.0)
    judgement = judge_of(timing, name="eager", is_baseline=True)
    assert (judgement.verdict, judgement.word) == (OK, word)
    assert any(f"{(lo + hi) / 2:.3g}× itself" in warning for warning in judgement.warnings) == is_told


def test_a_failure_is_the_verdict_and_never_an_exception(judge_of):
    failure = failed(Status.CRASHED, ReasonCode.SIGNAL, "its process was killed by SIGSEGV")
    judgement = judge_of(timing_of(), checking=failure)
    assert judgement.verdict is failure.verdict
    assert judgement.timing is judgement.worst is judgement.speedup is None


def test_cpp_that_refuses_cuda_tensors_is_for_another_device(judge_of):
    refusal = failed(Status.INCORRECT, ReasonCode.RAISED, "raised RuntimeError: A must be on the CPU in forward")
    assert judge_of(timing_of(), checking=refusal, language="cpp").verdict.status is Status.SKIPPED
    assert judge_of(timing_of(), checking=refusal, language="cuda").verdict.status is Status.INCORRECT
    assert judge_of(timing_of(), checking=refusal, language="cpp", kind="cpu").verdict.status is Status.INCORRECT


@pytest.mark.parametrize(("compilers", "status"), [((), Status.SKIPPED), (("g++",), Status.INCORRECT)])
def test_who_raises_for_want_of_a_compiler_is_skipped_where_the_machine_has_none(
    judge_of, monkeypatch, tmp_path, compilers, status
):
    for name in compilers:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    said = "raised InductorError: InvalidCxxCompiler: No working C++ compiler found in forward"
    verdict = judge_of(timing_of(), checking=failed(Status.INCORRECT, ReasonCode.RAISED, said)).verdict
    assert verdict.status is status
    if status is Status.SKIPPED:
        assert verdict.reason_code is ReasonCode.NO_CXX and "apt install g++" in verdict.reason


def test_where_a_few_calls_were_enough_one_process_is(settings):
    played = []
    judge = Judge(device("cpu"), [REFERENCE], settings, None, 1)
    judge.control = CONTROL

    def play(contestant, start, judgement, control, tell, *, first):
        played.append(first)
        brief = timing_of()
        brief.is_brief = True
        judgement.timings.append(brief)

    judge._play = play
    assert judge.judge(contestant_of(), [lambda: None] * 5, lambda text: None).verdict == OK
    assert played == [True]


def test_nothing_is_begun_anew_once_the_budget_of_the_row_is_spent(judge_of, settings, monkeypatch):
    doubt = failed(Status.UNSURE, ReasonCode.NOISY, "its clock is in doubt")
    for row_s, looks in ((1e6, 2), (0.0, 1)):
        spent, renewed = replace(settings, row_budget_s=row_s), []
        judge = Judge(device("cuda"), [REFERENCE], spent, None, 1)
        judge.control, judge.renew = CONTROL, lambda: renewed.append(1)

        def play(*_, first):
            looks_made.append(first)
            raise doubt

        looks_made = []
        judge._play = play
        assert judge.judge(contestant_of(), [lambda: None], lambda text: None).verdict is doubt.verdict
        assert len(looks_made) == looks


@pytest.mark.parametrize("players", [1, 3])
def test_a_budget_that_ends_in_another_look_takes_no_verdict_back(settings, players):
    judge = Judge(device("cuda"), [REFERENCE], settings, None, 1)
    judge.control, judge.renew, played = CONTROL, lambda: None, []

    def play(contestant, start, judgement, control, tell, *, first):
        played.append(first)
        if len(played) > 1:
            raise failures.row_timeout(3, 9.0)
        if players == 1:
            raise failed(Status.UNSURE, ReasonCode.NOISY, "its clock is in doubt")
        judgement.timings.append(timing_of())

    judge._play = play
    verdict = judge.judge(contestant_of(), [lambda: None] * players, lambda text: None).verdict
    assert len(played) == 2 and verdict.status is (Status.UNSURE if players == 1 else Status.OK)


def test_the_time_in_which_the_control_is_renewed_is_not_the_candidates(settings):
    judge = Judge(device("cuda"), [REFERENCE], replace(settings, row_budget_s=0.5), None, 1)
    judge.control, judge.renew, played = CONTROL, lambda: time.sleep(0.6), []

    def play(*_, first):
        played.append(first)
        raise failed(Status.UNSURE, ReasonCode.NOISY, "its clock is in doubt")

    judge._play = play
    judge.judge(contestant_of(), [lambda: None], lambda text: None)
    assert len(played) == 2 and not judge._is_late


def test_what_takes_eager_itself_long_takes_candidates_long_too(settings):
    judge = Judge(device("cuda"), [REFERENCE], replace(settings, row_budget_s=1.0), None, 1)
    judge.control = CONTROL
    ends = []
    judge._play = lambda contestant, start, judgement, control, tell, *, first: ends.append(judgement.ends_s) or (
        judgement.timings.append(timing_of())
    )
    judge.judge(contestant_of(is_baseline=True), [lambda: None], lambda text: None)
    judge.control_row_s = 100.0
    before_s = time.monotonic()
    judge.judge(contestant_of(), [lambda: None], lambda text: None)
    assert ends[0] == math.inf and ends[1] >= before_s + 1000


@pytest.mark.parametrize(("changes", "source", "status"), [
    ({"language": "cuda"}, "", Status.SKIPPED),
    ({}, "properties = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None", Status.SKIPPED),
    ({}, "properties = None", Status.INCORRECT),
    ({"language": "cuda", "kind": "cuda"}, "", Status.INCORRECT),
    ({"language": "cuda", "is_baseline": True}, "", Status.INCORRECT),
])
def test_what_lacks_what_it_left_out_of_its_import_without_a_gpu_is_not_wrong_there(
    judge_of, tmp_path, changes, source, status
):
    path = tmp_path / "mine.py"
    path.write_text(source, encoding="utf-8")
    missing = failed(
        Status.INCORRECT, ReasonCode.RAISED, "raised AttributeError: 'NoneType' object has no attribute 'f' in forward"
    )
    verdict = judge_of(timing_of(), checking=missing, path=str(path), **{"kind": "cpu", **changes}).verdict
    assert verdict.status is status
    assert ("it needs a GPU, and there is none here" in verdict.reason) is (status is Status.SKIPPED)


def test_deciding_on_nothing_but_good_figures_raises_nothing(reference_of):
    from harness.referee.comparing import judge_outputs

    reference = reference_of()
    inputs = reference.draw()
    figures = [judge_outputs(reference, inputs, reference.truth(inputs), reference.eager(inputs), "fp32")]
    decide(figures, reference, "fp32")
    wrong = replace(figures[0], max_u=1e12, rms_u=1e12, got=1.0, expected=2.0, worst_index=(3, 4))
    with pytest.raises(Failed, match=r"\[3, 4\] is 1 where 2 is expected") as caught:
        decide([*figures, wrong], reference, "fp32")
    assert caught.value.verdict.reason_code is ReasonCode.WRONG_VALUES
    narrowed = replace(figures[0], max_u=9000.0, rms_u=400.0, family="identity")
    with pytest.raises(Failed, match="tf32-class: 9000 u") as caught:
        decide([*figures, narrowed], reference, "fp32")
    assert caught.value.verdict.status is Status.IMPRECISE


@pytest.mark.parametrize(
    ("looks", "ends"), [("dd", "d"), ("dcc", "c"), ("dcd", "d"), ("dr", "r"), ("dcr", "r"), ("c", "c"), ("r", "r")]
)
def test_of_doubted_clocks_two_looks_of_three_decide_with_the_control_timed_anew(judge_of, looks, ends):
    verdicts = {
        "d": failed(Status.UNSURE, ReasonCode.NOISY, "run again when it is quiet"), "c": None,
        "r": failed(Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, "work was done outside the timed window"),
    }
    coming, renewed = iter(looks), []
    told = []
    judgement = judge_of(
        timing_of(), checking=lambda: verdicts[next(coming)], renew=lambda: renewed.append(1), tell=told.append
    )
    assert judgement.verdict == (OK if ends == "c" else verdicts[ends].verdict)
    assert next(coming, None) is None
    assert len(renewed) == min(1, len(looks) - 1)
    assert len(judgement.timings) == (ends == "c")
    again = [text for text in told if text.startswith("in doubt")]
    said = {
        "d": ("run again when it is quiet", "timing the control again, and then it"),
        "c": ("without a fault this time", "once more"),
    }
    assert len(again) == len(looks) - 1
    assert all(each in text for look, text in zip(looks, again) for each in said[look])


@pytest.mark.parametrize(("looks", "ends"), [("rr", "r"), ("rcc", "c"), ("rd", "d"), ("rcd", "d"), ("rcr", "r")])
def test_nobody_is_rejected_beside_a_control_that_was_timed_once(judge_of, looks, ends):
    verdicts = {
        "d": failed(Status.UNSURE, ReasonCode.NOISY, "run again when it is quiet"), "c": None,
        "r": failed(Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, "work was done outside the timed window"),
    }
    verdicts["r"].beside_control = True
    coming, renewed = iter(looks), []
    judgement = judge_of(timing_of(), checking=lambda: verdicts[next(coming)], renew=lambda: renewed.append(1))
    assert judgement.verdict == (OK if ends == "c" else verdicts[ends].verdict)
    assert next(coming, None) is None
    assert len(renewed) == 1


def test_what_is_certain_is_not_looked_at_again(judge_of):
    lie = failed(Status.REJECTED, ReasonCode.CLOCKS_DISAGREE, "work was done outside the timed window")

    def never():
        raise AssertionError("the control was timed again without need")

    assert judge_of(timing_of(), checking=lie, renew=never).verdict is lie.verdict


def test_without_a_control_one_is_made_and_where_there_is_none_nothing_is_ok(judge_of):
    asked = []
    judgement = judge_of(timing_of(), control=None, renew=lambda: asked.append(1))
    assert asked
    assert code(judgement) == (Status.UNSURE, ReasonCode.NOISY)
    assert "eager itself could not be timed" in judgement.verdict.reason
    assert judge_of(timing_of(), control=None, renew=lambda: None, is_baseline=True).verdict == OK


def test_a_control_that_could_not_be_timed_again_leaves_the_clocks_of_before(settings):
    judge = Judge(device("cuda"), [REFERENCE], settings, None, 1)
    judge.control = CONTROL
    coming = iter([None, later := timing_of()])
    judge._play = SimpleNamespace(control_again=lambda contestant, start: next(coming))
    judge.renew_control(contestant_of(is_baseline=True), lambda: None)
    assert judge.control is CONTROL
    judge.renew_control(contestant_of(is_baseline=True), lambda: None)
    assert judge.control == Control.of(later)


def test_a_control_that_is_timed_again_keeps_what_other_baselines_left_and_is_not_of_the_mean(settings):
    judge = Judge(device("cuda"), [REFERENCE], settings, None, 1)
    before = replace(CONTROL, others_us=(35.0, 42.0))
    judge.control = before
    timing = short_timing_of(apart=0.03)
    judge._play = SimpleNamespace(control_again=lambda contestant, start: timing)
    judge.eagers.add([short_timing_of(apart=0.01)])
    pooled = judge.eagers.over_processes
    judge.renew_control(contestant_of(is_baseline=True), lambda: None)
    assert judge.control == replace(Control.of(timing), others_us=(35.0, 42.0))
    assert judge.eagers.over_processes == pooled is not None, "it is of another minute than those that rows are over"


@pytest.mark.parametrize(("higher_us", "times"), [(20.0, 1), (30.0, 2), (None, 2)])
def test_beside_a_renewed_control_that_allows_more_than_the_one_before_the_second_look_has_another(
    judge_of, higher_us, times
):
    """It may be that one which was disturbed, and both looks would pass beside it."""
    coming, renewed = iter("dcc"), []
    doubt = failed(Status.UNSURE, ReasonCode.NOISY, "run again when it is quiet")

    def renew(judge):
        renewed.append(1)
        judge.control = replace(CONTROL, overhead_us=None if higher_us is None else CONTROL.overhead_us + higher_us)

    judgement = judge_of(
        timing_of(), checking=lambda: doubt if next(coming) == "d" else None, renew=lambda: renew(judge_of.judge)
    )
    assert judgement.verdict == OK and len(renewed) == times
