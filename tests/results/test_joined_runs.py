"""How runs are joined, and what is told of their differences."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.results.joined_runs import join
from harness.results.result_files import ResultFile


def run(*records) -> ResultFile:
    return ResultFile(Path("run.csv"), records)


def test_candidates_are_joined_by_source_even_when_the_file_was_renamed(make_record):
    case = join(
        [
            run(make_record(candidate="old", source_hash="aa")),
            run(make_record(candidate="new", source_hash="aa")),
        ]
    ).cases[0]
    assert [row.name for row in case.rows] == ["old / new"] and case.unmatched == ()


def test_an_edited_source_is_not_joined_and_is_said_to_be_edited(make_record):
    case = join([run(make_record(source_hash="aa")), run(make_record(source_hash="bb"))]).cases[0]
    assert case.rows == ()
    assert [(each.name, each.edited, len(each.found)) for each in case.unmatched] == [("tiled", True, 2)]


def test_two_copies_of_one_source_keep_their_own_rows(make_record):
    both = [make_record(candidate=name, source_hash="aa") for name in ("one", "two")]
    case = join([run(*both), run(both[0])]).cases[0]
    assert [row.name for row in case.rows] == ["one"]
    assert [(each.name, each.edited) for each in case.unmatched] == [("two", False)]


def test_sizes_in_another_order_are_the_same_question_and_other_sizes_are_not(make_record):
    first = run(make_record(sizes="M=1 K=2", source_hash="aa"))
    assert len(join([first, run(make_record(sizes="K=2 M=1", source_hash="aa"))]).cases) == 1
    assert len(join([first, run(make_record(sizes="K=2 M=2", source_hash="aa"))]).cases) == 2


def test_joined_by_name_an_edited_candidate_has_its_row_and_a_baseline_of_that_name_another(make_record):
    first = run(make_record(source_hash="aa"), make_record(role="baseline"))
    [case] = join([first, run(make_record(source_hash="bb"))], by="name").cases
    assert [(row.name, row.is_baseline) for row in case.rows] == [("tiled", False)] and len(case.unmatched) == 1


def test_what_differs_is_listed_by_group_with_what_was_not_recorded(make_record):
    joined = join([run(make_record(torch="2.11.0", driver="580", timer="events")),
                   run(make_record(torch="2.13.0", timer="clock"))])
    assert [(each.group, each.name, each.values) for each in joined.differences] == [
        ("method", "timer", ("events", "clock")),
        ("software", "torch", ("2.11.0", "2.13.0")),
        ("software", "driver", ("580", None)),
    ]


def test_hashes_that_an_older_row_has_not_got_are_no_difference(make_record):
    assert join([run(make_record()), run(make_record(harness_hash="aa"))]).differences == ()
    assert len(join([run(make_record(harness_hash="bb")), run(make_record(harness_hash="aa"))]).differences) == 1


@pytest.mark.parametrize("name", ["problem_hash", "baseline", "timer", "l2_policy"])
def test_another_method_is_mixed_and_one_that_was_not_recorded_is_not(make_record, name):
    one, other, silent = (run(make_record(**changes)) for changes in ({name: "a"}, {name: "b"}, {}))
    [case] = join([one, other, silent]).cases
    assert case.mixed(0, 1) == [(name, "a", "b")] and case.mixed(0, 2) == []


def test_a_power_limit_differs_only_where_two_runs_are_of_one_device(make_record):
    def differing(uuid):
        runs = [run(make_record(uuid="GPU-1", power_limit_w=700.0)), run(make_record(uuid=uuid, power_limit_w=350.0))]
        return [(each.group, each.values) for each in join(runs).differences]

    assert differing("GPU-1") == [("machine", ("700", "350"))] and differing("GPU-2") == []
