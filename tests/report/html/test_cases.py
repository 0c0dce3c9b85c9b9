"""Runs sorted into problems, cases and entries: what is newest, what is history, what is gone."""

from __future__ import annotations

import pytest

from harness.report.html.cases import problems_of
from harness.report.html.run_files import Source, gather


@pytest.fixture
def problem(results):
    (found,) = problems_of(gather([results]).runs, {"1" * 16: Source("candidates/tiled.py", "text")}, pytest.fail)
    return found


def test_devices_of_one_problem_stand_in_one_section_gpus_first(problem):
    assert [(case.device, case.sizes) for case in problem.cases] == [("NVIDIA H200", "M=4096"), ("AMD EPYC", "M=768")]
    assert problem.sizes_differ


def test_rows_of_another_problem_text_are_listed_apart(problem):
    h200 = problem.cases[0]
    assert h200.runs == 2 and h200.first.utc.startswith("2026-05-08")
    assert {entry.label for entry in h200.entries} == {"tiled", "eager", "wrong"}
    assert [record.candidate for record in h200.gone] == ["left_behind"]


def test_a_run_of_one_candidate_leaves_the_newest_rows_of_the_others(tmp_path, h200, recorded):
    first = [
        (h200(candidate="fast", time_us=100.0, rank=1), None), (h200(candidate="slow", time_us=300.0, rank=2), None),
        (h200(candidate="eager", role="baseline"), None),
    ]
    recorded.write_run(tmp_path, "20260501T120000Z", first)
    again = [(h200(candidate="slow", time_us=50.0, rank=1, utc="2026-05-08T12:00:00Z"), None),
             (h200(candidate="eager", role="baseline", utc="2026-05-08T12:00:00Z"), None)]
    recorded.write_run(tmp_path, "20260508T120000Z", again)
    (found,) = problems_of(gather([tmp_path]).runs, {})
    rows = [(entry.label, entry.record.time_us, entry.record.rank, entry.is_earlier) for entry in found.cases[0].entries]
    assert rows == [("slow", 50.0, 1, False), ("fast", 100.0, 2, True), ("eager", 600.0, None, False)]
    assert found.cases[0].gone == () and found.cases[0].first.utc.startswith("2026-05-08")


@pytest.mark.parametrize("changed", [{"problem_hash": "e" * 16}, {"l2_policy": "another"}, {"uuid": "GPU-2"}])
def test_a_row_of_another_problem_method_or_card_is_no_row_of_the_case(tmp_path, h200, recorded, changed):
    usual = {"l2_policy": "cold", "uuid": "GPU-1"}
    recorded.write_run(tmp_path, "20260501T120000Z", [(h200(candidate="old", **(usual | changed)), None)])
    new = h200(candidate="new", utc="2026-05-08T12:00:00Z", **usual)
    recorded.write_run(tmp_path, "20260508T120000Z", [(new, None)])
    (found,) = problems_of(gather([tmp_path]).runs, {})
    assert [entry.label for entry in found.cases[0].entries] == ["new"]
    assert [record.candidate for record in found.cases[0].gone] == ["old"]


def test_an_entry_has_its_history_samples_and_source(problem):
    tiled = problem.cases[0].best
    assert [record.speedup for record in tiled.history] == [3.0, 4.5]
    assert tiled.samples.players and tiled.source.path == "candidates/tiled.py"
    others = [entry for entry in problem.cases[0].entries if entry.label != "tiled"]
    assert all(entry.source is None for entry in others)


def test_two_sizes_in_one_file_have_their_own_samples(tmp_path, h200, recorded):
    rows = [
        (h200(candidate="tiled", sizes=sizes, run_id=sizes), recorded.samples(errors=[{"family": sizes}]))
        for sizes in ("M=1024", "M=4096")
    ]
    recorded.write_run(tmp_path, "run", rows)
    (found,) = problems_of(gather([tmp_path]).runs, {}, pytest.fail)
    assert {case.sizes: case.entries[0].samples.errors[0].family for case in found.cases} == {
        "M=1024": "M=1024", "M=4096": "M=4096"
    }


def test_anchors_and_labels_are_each_one_of_a_kind(tmp_path, h200, recorded):
    rows = [
        (h200(candidate=name, role=role), None)
        for name, role in (
            ("eager", "baseline"),
            ("eager", "candidate"),
            ("eager", "candidate"),
            (" eager ", "candidate"),
        )
    ]
    recorded.write_run(tmp_path, "run", rows)
    (problem,) = problems_of(gather([tmp_path]).runs, {})
    labels = [entry.label for entry in problem.cases[0].entries]
    assert len(set(labels)) == 4 and labels[0] == "eager"
    assert len({entry.anchor for entry in problem.cases[0].entries}) == 4


def test_two_problems_and_two_dtypes_are_three_sections(tmp_path, h200, recorded):
    rows = [
        (h200(problem=problem, dtype=dtype), None)
        for problem, dtype in (("b", "float32"), ("a", "float32"), ("a", "float16"))
    ]
    recorded.write_run(tmp_path, "run", rows)
    found = problems_of(gather([tmp_path]).runs, {})
    assert [(each.name, each.dtype) for each in found] == [("a", "float16"), ("a", "float32"), ("b", "float32")]
