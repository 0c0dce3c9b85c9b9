"""Reading back what a run, an older version or a spreadsheet wrote; saying what is wrong with the rest."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.verdict import ReasonCode, Status
from harness.results.reader import read_records
from harness.results.record import FIELDS
from harness.results.writer import csv_text

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def written(tmp_path, make_record):
    def write(text: str | None = None, **changes) -> Path:
        path = tmp_path / "run.csv"
        path.write_text(csv_text([make_record(**changes)]) if text is None else text)
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_records(path)
    return str(caught.value).replace(str(path.parent) + "/", "")


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.csv")), ids=lambda path: path.stem)
def test_what_is_read_and_written_again_has_the_same_cells_and_nothing_in_columns_that_came_later(path):
    with path.open(newline="") as file:
        before = list(csv.DictReader(file))
    after = list(csv.DictReader(io.StringIO(csv_text(read_records(path)), newline="")))
    assert [{name: row[name] for name in before[0]} for row in after] == before
    assert {row[name] for row in after for name in set(row) - set(before[0])} <= {""}


def test_values_come_back_typed(written):
    path = written(
        status="crashed", reason_code="signal", reason="SIGSEGV", build_s=47.7, registers=32, cached=False
    )
    [record] = read_records(path)
    assert (record.status, record.reason_code) == (Status.CRASHED, ReasonCode.SIGNAL)
    assert (record.build_s, record.registers, record.cached, record.time_us) == (47.7, 32, False, None)


def test_a_spreadsheets_way_of_writing_is_understood(written, make_record):
    text = (
        csv_text([make_record(cached=True, launches=40)])
        .replace(",true,", ",TRUE,")
        .replace(",40,", ",40.0,")
    )
    path = written("\ufeff" + text.replace("\n", "\r\n"))
    assert read_records(path) == [make_record(cached=True, launches=40)]


def test_unknown_columns_are_passed_over_with_a_note(written, make_record):
    header, row = csv_text([make_record()]).splitlines()
    notes: list[str] = []
    path = written(f"{header},colour\n{row},green\n")
    assert read_records(path, notes.append) == [make_record()]
    assert notes == [f"{path}: passed over columns that this version does not know: colour"]


def test_figures_whose_columns_were_taken_away_are_noted_as_not_measured(written):
    path = written(speedup=2.0, speedup_lo=1.9, speedup_hi=2.1)
    table = list(csv.reader(path.open(newline="")))
    kept = [place for place, name in enumerate(table[0]) if name not in ("speedup_lo", "time_us")]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[row[place] for place in kept] for row in table])
    notes = []
    [record] = read_records(path, notes.append)
    assert notes == [f"{path}: has no column time_us, speedup_lo: taken as not measured"]
    assert (record.speedup, record.speedup_lo) == (2.0, None)


def test_optional_columns_may_be_missing(written, make_record):
    path = written(
        "schema_version,run_id,utc,problem,sizes,dtype,candidate,status\n"
        "1,r,2026-05-01T12:30:05Z,tril_matmul,M=4096,float32,tiled,ok\n"
    )
    [record] = read_records(path)
    assert record.candidate == "tiled" and record.role == "candidate" and record.speedup is None


def test_a_file_of_something_else_is_refused_by_the_columns_it_lacks(written):
    assert refusal(written("name,colour\nx,y\n")).startswith(
        "run.csv:1: not a file of results: it has no column schema_version, run_id, utc, problem"
    )


def test_a_page_of_text_is_no_file_of_results_rather_than_one_that_was_cut_short(written):
    page = "# A title\n\nWords, with a comma.\n"
    assert refusal(written(page)).startswith("run.csv:1: not a file of results: it has no column schema_version")


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_file_is_refused(written, text):
    assert refusal(written(text)).startswith("run.csv: the file is empty")


def test_a_missing_file_names_the_nearest_one(written):
    path = written()
    assert "Did you mean" in refusal(path.with_name("runn.csv"))


def test_a_row_that_was_cut_short_is_refused_with_its_line(written, make_record):
    header, row = csv_text([make_record()]).splitlines()
    assert refusal(written(f"{header}\n{row[:40]}\n")).startswith(
        f"run.csv:2: 3 values where the header names {len(FIELDS)}"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (",ok,", ",passed,", "run.csv:2: status is 'passed', which is no Status that this version knows"),
        (",2.5,", ",fast,", "run.csv:2: time_us is 'fast', which is no number"),
        ("\n1,", "\n,", "run.csv:2: schema_version is '', which is no whole number"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_with_its_line_and_column(
    written, make_record, old, new, said
):
    text = csv_text([make_record(time_us=2.5)])
    assert old in text
    assert refusal(written(text.replace(old, new))) == said


def test_a_newer_version_is_refused_in_words(written, make_record):
    text = csv_text([make_record()]).replace("\n1,", "\n7,")
    assert "newer version of this software (schema 7, known here: 1)" in refusal(written(text))
