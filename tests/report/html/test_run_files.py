"""Every run below what was named, oldest first, and a sentence for what was passed over."""

from __future__ import annotations

import pytest

from harness.model.errors import InputError
from harness.report.html.run_files import gather
from harness.results.writer import csv_text


def test_a_folder_stands_for_all_its_runs_from_the_oldest_to_the_newest(results):
    found = gather([results])
    assert [run.utc[:10] for run in found.runs] == ["2026-05-01", "2026-05-01", "2026-05-08"]
    assert found.notes == ()


def test_a_file_named_beside_its_folder_is_read_once(results):
    (path,) = results.rglob("20260508T090000Z.csv")
    assert len(gather([results, path]).runs) == 3
    assert len(gather([path]).runs) == 1


def test_another_tools_csv_below_a_folder_is_passed_over_with_its_name(results):
    (results / "prices.csv").write_text("date,price\n2026-05-01,3\n")
    found = gather([results])
    assert len(found.runs) == 3
    (note,) = found.notes
    assert "prices.csv" in note and "no column" in note


def test_a_run_without_records_is_passed_over(results):
    (results / "begun.csv").write_text(csv_text([]))
    assert any("begun.csv" in note and "no records" in note for note in gather([results]).notes)


@pytest.mark.parametrize("text", ["date,price\n", ""], ids=["another tool's", "empty"])
def test_a_named_file_that_is_none_of_ours_is_an_error_of_its_own(tmp_path, text):
    path = tmp_path / "named.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="named.csv"):
        gather([path])


def test_a_folder_without_results_and_a_missing_one_say_so(tmp_path):
    with pytest.raises(InputError, match="no results here"):
        gather([tmp_path])
    with pytest.raises(InputError, match="no such file or folder"):
        gather([tmp_path / "resluts"])
