"""The matrix on a page and in the folder of results, also when it is made in several sittings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.model.errors import InputError
from harness.results.record import Record
from harness.selftest import matrix
from harness.selftest.matrix import Row

CONTROL = Record(
    run_id="r", utc="2026-01-01T10:00:00Z", problem="tril_small", sizes="M=1024", dtype="float32", candidate="eager",
    role="baseline", status="ok", device_kind="cpu", device_name="AMD EPYC", torch="2.13.0",
)
ROW = Row("clock", "side_stream", "Returns early.", "clock", "correct, 20×", True, True, "rejected/clocks_disagree",
          "caught", "clocks disagree")
PAGE = """# Title

<!-- matrix:cuda -->
old cuda
<!-- /matrix:cuda -->

<!-- matrix:cpu -->
<!-- /matrix:cpu -->
end
"""


def test_a_part_of_the_corpus_adds_to_what_the_folder_holds_and_the_whole_replaces_it(tmp_path):
    matrix.keep([ROW, replace(ROW, name="gone")], CONTROL, tmp_path, whole=True)
    kept = matrix.keep([replace(ROW, outcome="MISSED"), replace(ROW, name="new")], CONTROL, tmp_path, whole=False)
    assert [(row.name, row.outcome) for row in kept.rows] == [
        ("gone", "caught"), ("new", "caught"), ("side_stream", "MISSED"),
    ]
    kept = matrix.keep([ROW], CONTROL, tmp_path, whole=True)
    assert kept.rows == [ROW]


def test_a_folder_whose_matrix_is_broken_begins_a_new_one(tmp_path):
    (tmp_path / "matrix-cpu.json").write_text('[{"name": 1}]', encoding="utf-8")
    assert matrix.keep([ROW], CONTROL, tmp_path, whole=False).rows == [ROW]


def test_the_matrix_stands_between_its_own_markers_and_nothing_else_moves(tmp_path):
    path = tmp_path / "page.md"
    path.write_text(PAGE, encoding="utf-8")
    matrix.check_markers(path)
    kept = matrix.keep([ROW], CONTROL, tmp_path, whole=True)
    matrix.write(path, kept)
    once = path.read_text(encoding="utf-8")
    matrix.write(path, kept)
    assert path.read_text(encoding="utf-8") == once
    before, after = once.split("<!-- matrix:cpu -->")
    assert before == PAGE.split("<!-- matrix:cpu -->")[0]
    assert after.endswith("|\n<!-- /matrix:cpu -->\nend\n")
    assert "### AMD EPYC (device=cpu) · torch 2.13.0 · 2026-01-01 10:00 UTC" in after
    assert "`side_stream`" in after


def test_a_page_without_markers_is_refused_with_the_lines_that_it_lacks(tmp_path):
    path = tmp_path / "page.md"
    with pytest.raises(InputError, match="No such file"):
        matrix.check_markers(path)
    path.write_text(PAGE.replace("<!-- /matrix:cpu -->", ""), encoding="utf-8")
    with pytest.raises(InputError, match="Write the lines <!-- matrix:cpu --> and <!-- /matrix:cpu -->"):
        matrix.check_markers(path)
