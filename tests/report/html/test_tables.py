"""Tables as finished cells: what a leaderboard shows, and what it leaves empty."""

from __future__ import annotations

import pytest

from harness.report.html import tables
from harness.report.html.cases import problems_of
from harness.report.html.run_files import gather


@pytest.fixture
def problem(results):
    return problems_of(gather([results]).runs, {})[0]


def test_a_board_shows_times_in_one_unit_and_nothing_for_what_was_wrong(problem):
    board = tables.board(problem.cases[0])
    cells = {row.entry.label: (row.time, row.ratio, row.interval, row.call, row.tone) for row in board.rows}
    assert board.unit == "ms" and board.baseline == "eager"
    assert cells["tiled"] == ("0.6000", "4.500×", "[4.400, 4.600]", "FASTER", "good")
    assert cells["wrong"] == ("", "", "", "", "bad")
    assert board.has("rate") and board.rate_title == "TFLOP/s"


def test_the_reason_of_a_row_that_did_not_rank_is_said(problem):
    said = {row.entry.label: row.remarks for row in tables.board(problem.cases[0]).rows}
    assert said["wrong"] == ("wrong at (3, 5)",) and said["tiled"] == ()


def test_an_ok_candidate_without_a_rank_is_told_why(tmp_path, h200, recorded):
    recorded.write_run(
        tmp_path,
        "run",
        [(h200(candidate="first", rank=1), None), (h200(candidate="calls_cublas", kind="library"), None)],
    )
    case = problems_of(gather([tmp_path]).runs, {})[0].cases[0]
    (remark,) = next(row.remarks for row in tables.board(case).rows if row.entry.label == "calls_cublas")
    assert "without a rank: its time is a library's" in remark
