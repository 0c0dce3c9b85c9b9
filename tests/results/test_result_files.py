"""Which runs a person means by a file or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.results.result_files import ResultFile, find_runs
from harness.results.writer import RunFiles


@pytest.fixture
def ran(tmp_path, make_record):
    def run(utc: str, device: str = "NVIDIA H200", records: int = 1) -> Path:
        files = RunFiles.create(tmp_path / "results", "tril_matmul", device.lower().replace(" ", "-"), utc)
        for number in range(records):
            files.append(make_record(candidate=f"c{number}", utc=utc, device_name=device))
        return files.csv_path

    return run


def test_a_folder_stands_for_the_newest_run_of_each_device(tmp_path, ran):
    ran("2026-05-01T12:00:00Z")
    newest = ran("2026-05-08T12:00:00Z")
    other = ran("2026-04-01T12:00:00Z", "NVIDIA L4")
    runs, notes = find_runs([tmp_path / "results"])
    assert {run.path for run in runs} == {newest, other} and notes == []


def test_a_run_that_ended_before_its_first_record_is_not_the_newest(tmp_path, ran):
    full = ran("2026-05-01T12:00:00Z")
    ran("2026-05-08T12:00:00Z", records=0)
    assert [run.path for run in find_runs([tmp_path])[0]] == [full]


def test_files_come_in_the_order_named_and_each_once(tmp_path, ran):
    old, new = ran("2026-05-01T12:00:00Z"), ran("2026-05-08T12:00:00Z")
    assert [run.path for run in find_runs([new, old, tmp_path])[0]] == [new, old]


def test_a_strange_csv_below_a_folder_is_passed_over_with_a_note(tmp_path, ran):
    ran("2026-05-01T12:00:00Z")
    (tmp_path / "prices.csv").write_text("a,b\n1,2\n")
    runs, [note] = find_runs([tmp_path])
    assert len(runs) == 1 and "prices.csv:1: not a file of results" in note


def test_what_cannot_be_used_and_was_named_is_refused(tmp_path, ran):
    with pytest.raises(InputError, match="no results below"):
        find_runs([tmp_path])
    with pytest.raises(InputError, match="a header and no records"):
        find_runs([ran("2026-05-01T12:00:00Z", records=0)])
    for name in ("nothing.csv", "nothing", "nowhere/nothing.csv"):
        with pytest.raises(InputError, match="no such file.* `python run.py PROBLEM` writes results"):
            find_runs([tmp_path / name])


def test_a_glob_stands_for_its_files_and_what_is_none_of_ours_is_noted(tmp_path, ran):
    old, new = ran("2026-05-01T12:00:00Z"), ran("2026-05-08T12:00:00Z")
    (old.parent / "prices.csv").write_text("a,b\n1,2\n")
    runs, [note] = find_runs([old.parent / "*"])  # the raw samples beside the CSVs are passed over in silence
    assert [run.path for run in runs] == [old, new] and "prices.csv" in note


def test_a_glob_that_matches_nothing_of_ours_is_refused_with_the_first_reason(tmp_path):
    with pytest.raises(InputError, match="no file matches this pattern"):
        find_runs([tmp_path / "*.csv"])
    (tmp_path / "prices.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="none of the 1 files .* no column"):
        find_runs([tmp_path / "*.csv"])


def test_raw_samples_are_refused_with_the_name_of_their_csv(ran):
    path = ran("2026-05-01T12:00:00Z")
    with pytest.raises(InputError, match=f"holds raw samples.* Name {path}"):
        find_runs([path.with_suffix(".jsonl")])


def test_one_file_with_two_gpus_is_two_runs(tmp_path, make_record):
    files = RunFiles.create(tmp_path, "tril_matmul", "all", "2026-05-01T12:00:00Z")
    for uuid in ("GPU-1", "GPU-2"):
        files.append(make_record(uuid=uuid))
    runs, _ = find_runs([files.csv_path, files.csv_path])
    assert [run.device for run in runs] == [("uuid", "GPU-1"), ("uuid", "GPU-2")]


def test_a_run_is_as_new_as_its_newest_row(tmp_path, make_record):
    files = RunFiles.create(tmp_path, "tril_matmul", "gpu", "2026-05-08T12:00:00Z")
    for utc in ("2026-05-01T12:00:00Z", "2026-05-08T12:00:00Z"):
        files.append(make_record(utc=utc, candidate=utc))
    assert find_runs([files.csv_path])[0][0].utc == "2026-05-08T12:00:00Z"


def test_with_its_history_a_folder_stands_for_all_runs_below_it(tmp_path, ran):
    paths = {ran("2026-05-01T12:00:00Z"), ran("2026-05-08T12:00:00Z")}
    assert {run.path for run in find_runs([tmp_path], history=True)[0]} == paths


@pytest.mark.parametrize(("other_bytes", "is_same"), [(25_276_063_744, True), (25_276_502_016, True), (33_700_000_000, False)])
def test_a_cpu_whose_memory_differs_by_some_kilobytes_is_one_device(make_record, other_bytes, is_same):
    of = {"device_kind": "cpu", "device_name": "AMD EPYC", "uuid": None, "sm_count": 2}
    one, other = (
        ResultFile(Path("a.csv"), (make_record(**of, memory_bytes=size_bytes),)) for size_bytes in (25_276_514_304, other_bytes)
    )
    assert (one.device == other.device) is is_same
