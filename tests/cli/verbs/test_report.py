"""`run.py report` as it is typed: a file where it was asked for, and a sentence for every mistake."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.cli import main

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def results(tmp_path) -> Path:
    """One run, since a page of every device's takes seconds."""
    run = Path("tril_matmul", "nvidia-h200")
    shutil.copytree(REPOSITORY / "results" / run, tmp_path / "results" / run)
    return tmp_path / "results"


def test_a_folder_gets_its_report_inside_it(results, capsys):
    assert main(["report", str(results)]) == 0
    out = capsys.readouterr().out
    written = results / "report.html"
    assert written.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert str(written) in out and "1 problem" in out
    assert list(results.glob("*.part")) == []


def test_without_words_it_reads_results_here(results, monkeypatch):
    monkeypatch.chdir(results.parent)
    assert main(["report"]) == 0 and (results / "report.html").exists()


def test_json_has_the_same_keys_always(results, tmp_path, capsys):
    assert main(["report", str(results), "--out", str(tmp_path / "new" / "page.html"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said) == {"html", "bytes", "runs", "problems", "rows", "notes"}
    assert said["bytes"] == (tmp_path / "new" / "page.html").stat().st_size < 3_000_000


def test_an_older_report_is_replaced_and_nothing_else_is(results, capsys):
    assert main(["report", str(results)]) == 0 and main(["report", str(results)]) == 0
    csv = next(results.rglob("*.csv"))
    before = csv.read_text()
    assert main(["report", str(results), "--out", str(csv)]) == 2
    assert "no report of ours" in capsys.readouterr().err and csv.read_text() == before


def test_a_pipe_is_never_replaced_by_a_file(results, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    assert main(["report", str(results), "--out", str(tmp_path / "pipe")]) == 2
    assert (tmp_path / "pipe").is_fifo() and "not a regular file" in capsys.readouterr().err


def mistakes(tmp_path: Path) -> dict[str, tuple[list[str], str]]:
    (tmp_path / "other.csv").write_text("date,price\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "bare").mkdir()
    return {
        "a missing folder": ([str(tmp_path / "resluts")], "no such file or folder"),
        "an empty folder": ([str(tmp_path / "bare")], "no results here"),
        "another tool's CSV": ([str(tmp_path / "other.csv")], "no column"),
        "an empty file": ([str(tmp_path / "empty.csv")], "is empty"),
        "a folder to write to": (["results", "--out", str(tmp_path)], "is a folder"),
        "a place that is no folder": (["results", "--out", str(tmp_path / "other.csv" / "x.html")], "cannot be"),
        "sources that are not there": (
            ["results", "--candidates", str(tmp_path / "none")],
            "no such folder of candidates",
        ),
        "an unknown flag": (["--outt", "x"], "--outt"),
    }


@pytest.mark.parametrize(
    "which",
    [
        "a missing folder",
        "an empty folder",
        "another tool's CSV",
        "an empty file",
        "a folder to write to",
        "a place that is no folder",
        "sources that are not there",
        "an unknown flag",
    ],
)
def test_a_mistake_is_answered_in_a_sentence(which, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(REPOSITORY)
    words, named = mistakes(tmp_path)[which]
    assert main(["report", *words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and named in said.err and "Traceback" not in said.err
    assert len(said.err.strip().splitlines()) <= 2


def test_what_draws_and_is_not_installed_is_named_with_what_to_type(results, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "altair" else object())
    assert main(["report", str(results)]) == 1
    assert "pip install altair" in capsys.readouterr().err
