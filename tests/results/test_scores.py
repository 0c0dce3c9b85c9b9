"""KernelBench's scores: its own definitions, on hand-made records."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from harness.report.score_table import score_json, score_text
from harness.results.record import Record
from harness.results.result_files import ResultFile
from harness.results.scores import THRESHOLDS, reward_of, scores_of

BAD = {"incorrect": "wrong_values", "crashed": "signal", "skipped": "no_gpu", "checked": "interpreted", "unsure": "noisy",
       "rejected": "below_floor"}


def row(problem: str, speedup: float | None = None, status: str = "ok", name: str = "a", **changes) -> Record:
    figures = {} if speedup is None else {
        "speedup": speedup, "speedup_lo": speedup * 0.99, "speedup_hi": speedup * 1.01, "time_us": 10.0}
    why = {"reason_code": BAD[status], "reason": "so"} if status in BAD else {}
    plain = {"run_id": "r", "utc": "2026-05-01T12:30:05Z", "problem": problem, "sizes": "", "dtype": "float32",
             "candidate": name, "status": status, "uuid": "GPU-1", "device_name": "NVIDIA H200"}
    return Record(**(plain | figures | why | changes))


def scores(*rows: Record, without=()):
    [found] = scores_of([ResultFile(Path("r.csv"), tuple(rows))], without)
    return found


def test_fast_p_is_the_share_of_all_samples_that_are_correct_and_faster_than_p():
    found = scores(row("p1", 0.6), row("p2", 1.2), row("p3", 3.0), row("p4", status="incorrect")).of_problems
    assert THRESHOLDS == (0, 0.5, 0.8, 1, 1.5, 2)
    assert found.fast == (0.75, 0.75, 0.5, 0.5, 0.25, 0.25)
    assert (found.n, found.correct, found.correctness_rate) == (4, 3, 0.75)


def test_faster_than_p_is_strictly_faster():
    assert scores(row("p", 1.0)).of_problems.fast == (1, 1, 1, 0, 0, 0)


def test_the_mean_is_geometric_and_over_the_correct_ones_alone():
    found = scores(row("p1", 0.5), row("p2", 8.0), row("p3", status="rejected")).of_problems
    assert found.mean.estimate == pytest.approx(2.0) and found.timed == 2
    assert found.mean.lo < 2.0 < found.mean.hi


def test_what_the_judges_clock_leaves_open_raises_no_score():
    open_by = {"speedup_lo": 0.9, "unvouched_us": 1.0}  # of 10: it may be 1.0 times
    found = scores(row("p", 1.1, **open_by), row("p", 1.05, name="sure"))
    assert found.of_problems.mean.estimate == pytest.approx(1.05), "the best of the problem"
    assert found.of_candidates.fast[THRESHOLDS.index(1)] == 0.5
    assert found.of_candidates.mean.estimate == pytest.approx((1.0 * 1.05) ** 0.5)


def test_a_row_of_which_all_is_vouched_for_counts_with_its_speedup_whatever_its_time():
    assert scores(row("p", 1.2, time_us=None)).of_problems.mean.estimate == pytest.approx(1.2)


def test_of_several_candidates_the_best_is_the_problems_sample_and_each_is_its_own():
    found = scores(row("p", 0.9), row("p", 2.5, name="b"), row("p", status="crashed", name="c"))
    assert (found.of_problems.n, found.of_problems.fast[-1]) == (1, 1.0)
    third = 1 / 3
    assert found.of_candidates.n == 3
    assert found.of_candidates.fast == pytest.approx((2 * third, 2 * third, 2 * third, third, third, third))


def test_right_but_not_measurable_counts_as_correct_and_for_no_speed():
    found = scores(row("p", status="unsure")).of_problems
    assert found.fast == (1, 0, 0, 0, 0, 0) and found.mean is None


@pytest.mark.parametrize("status", ["skipped", "checked"])
def test_what_nothing_here_could_run_is_left_out_and_named(status):
    found = scores(row("p1", 2.0), row("p2", status=status))
    assert found.of_problems.n == 1 and found.left_out == ("p2",) and found.candidates_left_out == 1


def test_a_problem_without_a_candidate_counts_as_not_solved():
    found = scores(row("p1", 2.5), without=["p2"])
    assert found.of_problems.fast[0] == 0.5 and found.unsolved == ("p2",)


def test_a_problem_that_cannot_show_what_a_candidate_computes_is_no_sample_and_is_named():
    found = scores(row("p1", 2.0), row("p2", 80.0, problem_note="same_output"), row("p3", status="incorrect"))
    assert (found.of_problems.n, found.of_candidates.n, found.unshown) == (2, 2, ("p2",))
    assert "left out, for they cannot show what a candidate computes: p2" in score_text([found])
    assert score_json([found])[0]["unshown"] == ["p2"]


def test_a_candidate_that_leaves_the_state_as_it_was_is_no_sample_and_the_others_of_its_problem_are():
    found = scores(row("p", 9.0, state_moved=False), row("p", 2.0, name="b", state_moved=True))
    assert (found.of_problems.fast[-1], found.of_candidates.n, found.unshown) == (0.0, 1, ())


def test_an_interval_that_holds_the_threshold_is_counted_as_open():
    assert scores(row("p", 1.005)).of_problems.open == (0, 0, 0, 1, 0, 0)


@pytest.mark.parametrize(("call", "open_at_one"), [("UNSURE", 1), ("SLOWER", 0), ("SAME", 0)])
def test_one_that_the_control_s_distance_covers_is_open_at_one(call, open_at_one):
    assert scores(row("p", 0.975, call=call)).of_problems.open == (0, 0, 0, open_at_one, 0, 0)
    assert ("or that are UNSURE at 1" in score_text([scores(row("p", 0.975, call=call))])) is bool(open_at_one)


def test_baselines_are_no_samples_and_devices_have_scores_of_their_own():
    runs = [ResultFile(Path("a.csv"), (row("p", 2.0), row("p", 9.0, role="baseline", name="torch.compile"))),
            ResultFile(Path("b.csv"), (row("p", 0.4, uuid="GPU-2", device_name="NVIDIA L4"),))]
    assert [(each.device_name, each.of_candidates.n, each.of_candidates.fast[1]) for each in scores_of(runs)] == [
        ("NVIDIA H200", 1, 1.0), ("NVIDIA L4", 1, 0.0)]


def test_a_device_where_nothing_ran_has_no_share_of_nothing():
    found = scores(row("p", status="skipped"))
    assert math.isnan(found.of_problems.correctness_rate)
    assert score_json([found])[0]["best_of_each_problem"]["fast_p"]["1"] is None
    assert "left out" in score_text([found])


def test_the_table_has_a_column_for_each_threshold():
    text = score_text([scores(row("p1", 1.2), row("p2", status="incorrect"))])
    header, *_ = [line for line in text.splitlines() if "fast_0" in line]
    assert header.split()[:8] == ["n", "correct", "fast_0", "fast_0.5", "fast_0.8", "fast_1", "fast_1.5", "fast_2"]
    assert "without a correct candidate: p2" in text


def test_gpus_of_one_model_that_shared_the_work_have_scores_in_common():
    shared = [ResultFile(Path("a.csv"), (row("p", 2.0, uuid="GPU-1"), row("p", 1.0, name="eager", role="baseline", uuid="GPU-1"))),
              ResultFile(Path("a.csv"), (row("q", 0.5, uuid="GPU-2"), row("p", 1.0, name="eager", role="baseline", uuid="GPU-2")))]
    [found] = scores_of(shared)
    assert (found.of_problems.n, found.of_candidates.n) == (2, 2)


def test_gpus_of_one_model_that_both_did_the_work_have_scores_of_their_own():
    both = [ResultFile(Path(f"{uuid}.csv"), (row("p", 2.0, uuid=uuid), row("q", 1.0, uuid=uuid))) for uuid in ("GPU-1", "GPU-2")]
    assert [found.of_problems.n for found in scores_of(both)] == [2, 2]


def test_two_cards_of_one_model_are_told_apart_in_words_and_as_json():
    runs = [ResultFile(Path(f"{card}.csv"), (row("p", 2.0, uuid=f"GPU-{card * 8}-rest"),)) for card in ("a", "b")]
    found = scores_of(runs)
    assert [each["uuid"] for each in score_json(found)] == ["GPU-aaaaaaaa-rest", "GPU-bbbbbbbb-rest"]
    assert "NVIDIA H200 (GPU-aaaaaaaa)\n" in score_text(found)
    assert "NVIDIA H200\n" in score_text(found[:1])


def test_one_candidate_that_nothing_could_run_is_one():
    [found] = scores_of([ResultFile(Path("r.csv"), (row("p", 2.0), row("p", status="skipped", name="b")))])
    assert "could run it: 1 candidate\n" in score_text([found]) + "\n"


def test_a_candidate_that_was_judged_in_two_runs_is_one_sample_and_the_newest_counts():
    newer = ResultFile(Path("b.csv"), (row("p", 3.0, utc="2026-05-08T00:00:00Z"),))
    older = ResultFile(Path("a.csv"), (row("p", 0.7), row("p", 1.2, name="b")))
    [found] = scores_of([newer, older])
    assert found.of_candidates.n == 2
    assert found.of_candidates.fast[-1] == 0.5


def test_a_later_run_of_one_candidate_leaves_the_samples_of_the_others():
    first = ResultFile(Path("a.csv"), (row("p", 5.0, name="fast"), row("p", 1.2, name="edited")))
    later = "2026-05-08T12:30:05Z"
    second = ResultFile(Path("b.csv"), (row("p", status="incorrect", name="edited", utc=later),))
    [found] = scores_of([second, first])
    assert (found.of_problems.fast[-1], found.of_candidates.n, found.of_candidates.correct) == (1.0, 2, 1)


def test_rows_of_an_earlier_text_of_the_problem_are_no_samples():
    first = ResultFile(Path("a.csv"), (row("p", 5.0, name="fast", problem_hash="a" * 16),))
    second = ResultFile(Path("b.csv"), (row("p", 1.2, name="new", problem_hash="b" * 16, utc="2026-05-08T12:30:05Z"),))
    assert scores_of([first, second])[0].of_candidates.n == 1


def test_cards_that_shared_each_run_have_scores_in_common_whoever_judged_what_before():
    def run(path, utc, **of):
        return [ResultFile(Path(path), (row("p", 2.0, name=name, uuid=uuid, utc=utc),)) for name, uuid in of.items()]

    runs = [*run("a.csv", "2026-05-01T12:30:05Z", x="GPU-1", y="GPU-2"),
            *run("b.csv", "2026-05-08T12:30:05Z", x="GPU-2", y="GPU-1")]
    [found] = scores_of(runs)
    assert found.of_candidates.n == 2


def test_a_problem_whose_own_baseline_is_not_ok_has_no_score_over_it_and_is_named():
    expert = {"baseline": "expert", "baseline_hash": "e" * 16}
    good = row("p1", 2.0, **expert)
    bad = [row("p2", **expert), row("p2", status="incorrect", name="expert", role="baseline", source_hash="e" * 16, **expert)]
    runs = [ResultFile(Path("p1.csv"), (good,)), ResultFile(Path("p2.csv"), tuple(bad))]
    [found] = scores_of(runs)
    assert (found.of_problems.n, found.over, found.without_baseline) == (1, ("expert",), ("p2",))
    assert "the baseline that they are over is not ok: p2" in score_text([found])
    assert score_json([found])[0]["without_baseline"] == ["p2"]


@pytest.mark.parametrize(("speedup", "expected"), [(0.0, 0.1), (1.0, 0.55), (3.0, 0.775)])
def test_a_reward_follows_the_low_end_of_the_interval(speedup, expected):
    ranked = row("p", 5.0, rank=1, speedup_lo=speedup)
    assert reward_of(ranked) == pytest.approx(expected)
    assert reward_of(replace(ranked, speedup_hi=500.0)) == reward_of(ranked)


@pytest.mark.parametrize(("status", "code", "blame", "reward"), [
    ("incorrect", "wrong_values", "candidate", 0.0), ("build_failed", "compile_error", "candidate", 0.0),
    ("timed_out", "row_timeout", "candidate", 0.0), ("out_of_memory", "device_memory", "candidate", 0.0),
    ("unsure", "noisy", "machine", None), ("skipped", "device_lost", "machine", None),
    ("harness_error", "exception", "harness", None), ("checked", "not_timed", None, 0.1), ("checked", "interpreted", None, None),
    ("ok", "", None, 0.1),
])
def test_a_reward_is_none_where_the_candidate_is_not_to_blame_and_small_where_nothing_was_timed(status, code, blame, reward):
    found = row("p", status=status, reason_code=code, reason="so")
    assert (found.blame, reward_of(found)) == (blame, reward)


def test_what_goes_wrong_with_a_baseline_or_for_want_of_room_is_the_machines():
    assert row("p", status="incorrect", role="baseline").blame == "machine"
    assert row("p", status="out_of_memory", reason_code="device_memory", reason="so", blame="machine").blame == "machine"
