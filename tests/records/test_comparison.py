"""How runs are joined, and when a change is called one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.records.comparison import Change, change_between, join
from harness.records.runs import Run


def run(*records) -> Run:
    return Run(Path("run.csv"), records)


def speedup(value, half=0.01):
    return {"speedup": value, "speedup_lo": value - half, "speedup_hi": value + half}


@pytest.mark.parametrize(
    ("before", "now", "verdict"),
    [
        (speedup(1.0), speedup(1.5), "faster"),
        (speedup(1.5), speedup(1.0), "slower"),
        (speedup(1.0), speedup(1.015), "overlap"),
        (speedup(1.0), {"speedup": 1.5}, "unknown"),
    ],
)
def test_a_change_is_called_only_when_the_intervals_are_apart(make_record, before, now, verdict):
    change = change_between(make_record(**before), make_record(**now))
    assert change == Change(now["speedup"] / before["speedup"], verdict)


def test_ok_that_is_lost_or_won_has_no_ratio(make_record):
    ok = make_record(**speedup(1.0))
    bad = make_record(status="crashed", reason_code="signal", reason="SIGSEGV")
    assert change_between(ok, bad) == Change(None, "lost")
    assert change_between(bad, ok) == Change(None, "won")
    assert change_between(bad, bad) is None and change_between(None, ok) is None


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


def test_only_runs_of_the_same_device_have_a_reference_and_regressions(make_record):
    fast = make_record(source_hash="aa", **speedup(2.0))
    slow = make_record(source_hash="aa", **speedup(1.0))
    elsewhere = make_record(source_hash="aa", device_name="NVIDIA L4", **speedup(0.5))
    comparison = join([run(fast), run(elsewhere), run(slow)])
    [case] = comparison.cases
    assert [comparison.reference_of(number, case) for number in range(3)] == [None, None, 0]
    assert [(each.name, each.run, each.reference) for each in comparison.regressions()] == [("tiled", 2, 0)]


def test_what_differs_is_listed_with_what_was_not_recorded(make_record):
    comparison = join([run(make_record(torch="2.11.0", driver="580")), run(make_record(torch="2.13.0"))])
    assert [(each.name, each.values) for each in comparison.differences] == [
        ("torch", ("2.11.0", "2.13.0")),
        ("driver", ("580", None)),
    ]
