"""Files on the disk before the first measurement, and after every candidate."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace

import pytest

from harness.model.errors import InputError
from harness.results import writer
from harness.results.reader import read_records
from harness.results.record import FIELDS
from harness.results.writer import RunFiles, device_slug

UTC = "2026-05-01T12:30:05Z"


def created(tmp_path, utc=UTC):
    return RunFiles.create(tmp_path / "results", "tril_matmul", "nvidia-h200", utc)


def test_both_files_are_there_before_the_first_measurement(tmp_path):
    files = created(tmp_path)
    assert files.csv_path == tmp_path / "results/tril_matmul/nvidia-h200/20260501T123005Z.csv"
    assert files.csv_path.read_text() == ",".join(column.name for column in FIELDS) + "\n"
    assert files.jsonl_path == files.csv_path.with_suffix(".jsonl") and files.jsonl_path.read_text() == ""
    assert read_records(files.csv_path) == []


def test_each_record_is_on_the_disk_as_soon_as_it_exists(tmp_path, make_record):
    files = created(tmp_path)
    for name in ("first", "second"):
        assert files.append(make_record(candidate=name), {"candidate_us": [[1.5, 1.6]]}) is None
        assert read_records(files.csv_path)[-1].candidate == name
    assert sorted(path.name for path in files.csv_path.parent.iterdir()) == [
        "20260501T123005Z.csv",
        "20260501T123005Z.jsonl",
    ]


def test_finish_rewrites_the_rows_with_their_ranks(tmp_path, make_record):
    files = created(tmp_path)
    files.append(make_record(time_us=2.0))
    files.finish([replace(record, rank=1) for record in files.records])
    assert [record.rank for record in read_records(files.csv_path)] == [1]


def test_raw_samples_are_one_json_line_for_each_record(tmp_path, make_record):
    class Array:
        def tolist(self):
            return [1.0, float("nan")]

    files = created(tmp_path)
    files.append(make_record(), {"candidate_us": Array(), "order": ("ABBA",), "note": "x\n"})
    files.append(
        make_record(candidate="naive", status="incorrect", reason_code="wrong_values", reason="wrong")
    )
    first, second = [json.loads(line) for line in files.jsonl_path.read_text().splitlines()]
    assert first["samples"] == {"candidate_us": [1.0, None], "order": ["ABBA"], "note": "x\n"}
    assert (first["candidate"], second["status"], second["samples"]) == ("tiled", "incorrect", {})


def test_floats_keep_every_digit_and_none_is_an_empty_field(tmp_path, make_record):
    files = created(tmp_path)
    record = make_record(time_us=0.1 + 0.2, cached=False, reason='a "quoted", text\nof two lines')
    files.append(record)
    text = files.csv_path.read_text()
    assert "0.30000000000000004" in text and "None" not in text and ",false," in text
    assert read_records(files.csv_path) == [record]


def test_two_runs_in_one_second_do_not_share_a_file(tmp_path):
    assert [created(tmp_path).csv_path.name for _ in range(2)] == [
        "20260501T123005Z.csv",
        "20260501T123005Z-2.csv",
    ]
    assert created(tmp_path, "2026-05-01T12:30:06.123+00:00").csv_path.name == "20260501T123006Z.csv"


def test_of_a_run_without_a_record_nothing_stays_and_of_another_everything(tmp_path, make_record):
    empty, full = (created(tmp_path) for _ in range(2))
    full.append(make_record())
    for each in (empty, full):
        each.remove_if_empty()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == {full.csv_path, full.jsonl_path}


def test_a_place_that_cannot_be_written_is_one_sentence_with_the_flag_that_helps(tmp_path):
    (tmp_path / "results").write_text("a file where the folder should be")
    with pytest.raises(InputError) as caught:
        created(tmp_path)
    assert "cannot write the results to" in str(caught.value) and "--out DIR" in str(caught.value)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied"):
        created(tmp_path)


def test_a_full_disk_costs_a_sentence_and_keeps_the_record_for_the_next_try(
    tmp_path, make_record, monkeypatch
):
    files = created(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(writer.os, "replace", full)
        assert "No space left on device" in files.append(make_record(candidate="first"))
    assert read_records(files.csv_path) == []
    assert files.append(make_record(candidate="second")) is None
    assert [record.candidate for record in read_records(files.csv_path)] == ["first", "second"]
    assert [json.loads(line)["candidate"] for line in files.jsonl_path.read_text().splitlines()] == [
        "first",
        "second",
    ]


def test_thousands_of_rows_are_added_to_the_end_and_ranked_as_a_whole(tmp_path, make_record, monkeypatch):
    monkeypatch.setattr(writer, "_MOST_ANEW", 2)
    files = created(tmp_path)
    names = [f"c{number}" for number in range(5)]
    for number, name in enumerate(names, 1):
        anew = []
        monkeypatch.setattr(writer.os, "replace", lambda *paths: anew.append(paths) or os.rename(*paths))
        assert files.append(make_record(candidate=name, reason="a\n\"b\"")) is None
        assert [record.candidate for record in read_records(files.csv_path)] == names[:number]
        assert len(anew) == (number <= 2)
    assert files.finish(reversed(files.records)) is None
    assert [record.candidate for record in read_records(files.csv_path)] == names[::-1]


def test_a_disk_that_is_full_to_the_end_costs_neither_rows_nor_samples(tmp_path, make_record, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    files = created(tmp_path)
    assert files.append(make_record(candidate="first")) is None

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer.RunFiles, "_rewrite", full)
    monkeypatch.setattr(writer.RunFiles, "_add_lines", full)
    assert "tried again" in files.append(make_record(candidate="second"))
    refused = files.csv_path
    said = files.finish(files.records)
    assert said.startswith(f"could not write {refused}: No space left on device; the whole run is in {files.csv_path}")
    assert files.csv_path.is_relative_to(temporary)
    assert [record.candidate for record in read_records(files.csv_path)] == ["first", "second"]
    assert len(files.jsonl_path.read_text().splitlines()) == 2


def test_what_is_nowhere_is_not_said_to_be_somewhere(tmp_path, make_record, monkeypatch):
    files = created(tmp_path)
    files.append(make_record())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "not there"))

    def gone(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(writer.RunFiles, "_rewrite", gone)
    before = files.csv_path
    assert "what is printed is all" in files.finish(files.records)
    assert files.csv_path == before


@pytest.mark.parametrize(
    ("name", "kind", "slug"),
    [
        ("NVIDIA H200", "cuda", "nvidia-h200"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "cuda", "nvidia-h100-80gb-hbm3-mig-1g-10gb"),
        ("AMD EPYC 9654 96-Core Processor", "cpu", "cpu-amd-epyc-9654"),
        ("Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz", "cpu", "cpu-intel-xeon-platinum-8480c"),
        ("", "cpu", "cpu-unknown"),
        ("../../etc", "cuda", "etc"),
    ],
)
def test_a_device_name_becomes_a_folder_name(name, kind, slug):
    assert device_slug(name, kind) == slug


def test_pandas_reads_the_csv_without_options(tmp_path, make_record):
    pandas = pytest.importorskip("pandas")
    files = created(tmp_path)
    files.append(
        make_record(time_us=721.3, speedup=3.799, launches=40, source_hash="0a1b2c3d4e5f6071", cached=True)
    )
    files.append(
        make_record(
            candidate="naive",
            status="incorrect",
            reason_code="wrong_values",
            reason='a, "b"\nc',
            cached=False,
        )
    )
    table = pandas.read_csv(files.csv_path)
    assert list(table.columns) == [column.name for column in FIELDS] and len(table) == 2
    assert table["time_us"].dtype == float and table["time_us"].isna().tolist() == [False, True]
    assert table["cached"].dtype == bool
    assert table.sort_values("time_us").iloc[0]["candidate"] == "tiled"
    assert table["reason"][1] == 'a, "b"\nc'
