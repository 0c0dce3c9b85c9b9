"""The leaderboard of a watch as it grows: a line for each candidate that was judged, the table when all are."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from harness.cli.verbs.watch import LiveLeaderboard


@pytest.fixture
def row(make_record):
    def make(name, time_us=None, **changes):
        timed = {"time_us": time_us, "speedup": 1000.0 / time_us, "kind": "custom"} if time_us else {}
        return make_record(candidate=name, role="candidate", precision_class="fp32", **timed | changes)

    return make


@pytest.fixture
def board(capsys):
    """A board, with `shown(name, ...)`: what it prints."""
    return new_board(capsys, as_json=False)


def new_board(capsys, as_json):
    accuracy = SimpleNamespace(precision_class="fp32")
    made = LiveLeaderboard(SimpleNamespace(kinds=["custom"], accuracy=accuracy), as_json)
    present = {"tiled", "naive", "broken"}

    def shown(record=None, *, is_last=False):
        if record is None:
            made.complete(present)
        else:
            made.add(record, present, is_last=is_last)
        return capsys.readouterr().out

    return shown


def test_each_line_comes_by_itself_with_its_rank_so_far_and_the_titles_once(board, row):
    first, second = board(row("naive", 2000.0)), board(row("tiled", 1000.0))
    assert [line.split()[:3] for line in first.splitlines()[1:]][0] == ["#", "candidate", "status"]
    assert first.splitlines()[-1].split()[:3] == ["1", "naive", "ok"]
    assert [line.split()[:3] for line in second.splitlines()] == [["1", "tiled", "ok"]]


def test_the_last_of_a_pass_is_shown_by_the_table_of_all_and_that_once(board, row):
    board(row("naive", 2000.0))
    text = board(row("tiled", 1000.0), is_last=True)
    ranked = [line.split()[:2] for line in text.splitlines() if line[:3].strip().isdigit()]
    assert ranked == [["1", "tiled"], ["2", "naive"]]
    assert "Next:" not in text
    assert board() == ""


def test_a_table_that_no_last_row_brought_is_shown_when_the_pass_is_over(board, row):
    board(row("naive", 2000.0))
    assert "naive" in board() and board() == ""


def test_a_mistake_stands_under_its_line_with_file_and_line(board, row):
    reason = "broken.py:7: invalid syntax"
    text = board(row("broken", status="build_failed", reason_code="syntax_error", reason=reason))
    assert text.splitlines()[-1] == f"  broken: build_failed: {reason}"


def test_titles_are_said_again_where_the_columns_have_changed(board, row):
    board(row("broken", status="build_failed", reason_code="syntax_error", reason="broken.py:7: invalid syntax"))
    assert "time (ms)" in board(row("tiled", 1000.0))


def test_as_json_each_record_is_one_line_and_there_is_no_table(capsys, row):
    board = new_board(capsys, as_json=True)
    text = board(row("naive", 2000.0)) + board(row("tiled", 1000.0), is_last=True) + board()
    assert [json.loads(line)["candidate"] for line in text.splitlines()] == ["naive", "tiled"]
