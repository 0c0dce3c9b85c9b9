"""What `Referees` judge is on disk as well, where a folder is named: what `tune` and `serve` leave, as on one machine."""

from __future__ import annotations

import csv
import os
from dataclasses import replace
from pathlib import Path

import pytest
from fake_executors import CPU, FakeExecutors, answer_to
from listening import Listening

from harness.model.candidate import read_candidate
from harness.model.errors import InputError
from harness.model.problem import load_problem, problems_by_name
from harness.model.settings import load_settings
from harness.results.record import Record
from harness.runs.cluster import answer_files
from harness.runs.cluster.answer_files import AnswerFiles
from harness.runs.cluster.referees import Job
from harness.runs.tuning import tune

SOURCE = 'import torch\n\nPARAMETERS = {"BM": [1, 2, 3]}\n\n\nclass ModelNew(torch.nn.Module):\n    BM = PARAMETERS["BM"][0]\n'


def rows_in(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def timed(models):
    """A judge that finds each candidate right, and as fast as its value is large, on devices of these `models`."""
    def judge(place, asked):
        parameters = asked["candidate"]["parameters"]
        speedup = float(parameters.partition("=")[2])
        return answer_to(
            asked, status="ok", reason_code=None, reason=None, parameters=parameters, device_kind="cpu",
            device_name=models[place], kind="torch", precision_class="fp32", time_us=100.0 / speedup, speedup=speedup,
            speedup_lo=speedup, speedup_hi=speedup, rank=1,
        )

    return judge


def test_a_search_on_a_cluster_leaves_every_trial_in_a_csv(opened, tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE)
    problem, settings = load_problem(problems_by_name()["tril_matmul"]), load_settings("quick")
    judges = opened(FakeExecutors(timed(["One", "One"])), out_dir=tmp_path / "tuning")
    candidate = read_candidate(tmp_path / "mine.py", tuned=False)
    tuned = tune(replace(problem, kinds=("torch",)), candidate, settings, 32, Listening(), judges)
    rows = rows_in(tuned.csv_path)
    assert tuned.csv_path.is_relative_to(tmp_path / "tuning" / "tril_matmul" / "cpu-one")
    # The best were judged again; and a table of them all has ranks of them all.
    assert {row["parameters"] for row in rows} == {"BM=1", "BM=2", "BM=3"} and len(rows) == 6
    assert [row["rank"] for row in rows] == list("123456")


def test_there_is_a_csv_for_each_model_and_none_without_a_folder(opened, tmp_path):
    jobs = [Job("tril_matmul", SOURCE.replace("[1", f"[{number}"), config="quick") for number in range(1, 5)]

    def judge(place, asked):
        return answer_to(asked, device_kind="cpu", device_name=next(taken))

    for words in ({}, {"out_dir": tmp_path / "out"}):
        taken = iter(["One", "Two"] * 2)
        judges = opened(FakeExecutors(judge, [CPU]), **words)
        assert len(list(judges.map(jobs))) == 4
        judges.close()
    assert {path.parent.name: len(rows_in(path)) for path in tmp_path.rglob("*.csv")} == {"cpu-one": 2, "cpu-two": 2}


def test_another_pytorch_has_a_csv_of_its_own(opened, tmp_path):
    def judge(place, asked):
        return answer_to(asked, device_kind="cpu", device_name="One", torch=next(taken))

    taken = iter(["2.11.0", "2.13.0", "2.13.0"])
    judges = opened(FakeExecutors(judge, [CPU]), out_dir=tmp_path / "out")
    assert len(list(judges.map(Job("tril_matmul", f"{SOURCE}# {number}", config="quick") for number in range(3)))) == 3
    judges.close()
    assert sorted(sorted({row["torch"] for row in rows_in(path)}) for path in tmp_path.rglob("*.csv")) == [["2.11.0"], ["2.13.0"]]


def test_a_folder_that_nothing_can_be_written_to_is_said_before_anything_is_judged(opened, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(InputError, match="cannot write the results to .*out: File exists") as raised:
        opened(FakeExecutors(lambda place, asked: answer_to(asked)), out_dir=tmp_path / "out")
    assert "--out DIR" in raised.value.hint


def test_of_thousands_of_problems_only_so_many_files_are_held_and_all_have_their_records(monkeypatch, tmp_path):
    monkeypatch.setattr(answer_files, "_MOST_HELD", 2)
    before = len(os.listdir("/proc/self/fd"))
    files, problem = AnswerFiles(tmp_path), load_problem(problems_by_name()["tril_matmul"])
    job = {"candidate": {"name": "mine", "source_hash": "0"}, "problem": {"name": "tril_matmul"}, "number": 1}
    record = Record(**answer_to(job)[2])
    for number in (*range(5), *range(5)):
        assert files.append(number, problem, record, {}) is None
    assert len(os.listdir("/proc/self/fd")) == before + 2
    files.finish()
    assert len(os.listdir("/proc/self/fd")) == before
    assert [len(rows_in(path)) for path in tmp_path.rglob("*.csv")] == [2] * 5
