"""`serve`, `tune` and both selftests on a cluster, as they are typed, with real judges on the CPUs of its nodes."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model.paths import REPOSITORY

CORPUS = REPOSITORY / "tests" / "adversarial"
PROBLEM, SETTINGS = CORPUS / "tril_small.yaml", REPOSITORY / "configs" / "selftest.yaml"
RIGHT = """import torch

PARAMETERS = {"OFF_BY": [0, 1]}


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B)) + PARAMETERS["OFF_BY"][0]
"""
# Be the machine quiet or not.
TIMED = ("ok", "unsure")

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


def command(nodes, *words: object, jobs: str = "") -> subprocess.CompletedProcess[str]:
    """Type `run.py` with these words, for the CPU of the node with the A100."""
    there = ["--ray", nodes.cluster.address, "--device", "cpu", "--accelerator", "A100"]
    return subprocess.run(
        [sys.executable, "run.py", *map(str, words), *there], cwd=REPOSITORY, input=jobs, capture_output=True, text=True,
        timeout=250, check=False,
    )


def rows_below(folder: Path) -> list[dict[str, str]]:
    (path,) = folder.rglob("*.csv")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_jobs_are_served_by_a_cluster_and_their_records_are_on_disk(nodes, tmp_path):
    asked = {"problem": str(PROBLEM), "check_only": True}
    sources = {"right": RIGHT, "wrong": RIGHT.replace("[0, 1]", "[1]"), "again": RIGHT}
    lines = [json.dumps({**asked, "id": name, "source": source}) for name, source in sources.items()]
    ended = command(nodes, "serve", "--config", SETTINGS, "--out", tmp_path, jobs="\n".join([*lines, "{"]))
    assert ended.returncode == 0, ended.stderr
    answers = {each["id"]: each for each in map(json.loads, ended.stdout.splitlines())}
    assert answers.pop(None)["error"]["kind"] == "input"
    found = {name: (each["record"]["status"], each["reward"]) for name, each in answers.items()}
    assert found == {"right": ("checked", 0.1), "wrong": ("incorrect", 0.0), "again": ("checked", 0.1)}
    # Equal ones were under way at once, so that one of them was judged.
    assert sorted(row["status"] for row in rows_below(tmp_path)) == ["checked", "incorrect"]


def test_a_search_on_a_cluster_judges_every_choice_and_leaves_them_in_its_csv(nodes, tmp_path):
    (tmp_path / "mine.py").write_text(RIGHT)
    ended = command(nodes, "tune", PROBLEM, tmp_path / "mine.py", "--config", SETTINGS, "--out", tmp_path / "tuning", "--json")
    rows = rows_below(tmp_path / "tuning")
    by_values = {row["parameters"]: row["status"] for row in rows}
    assert by_values.pop("OFF_BY=1") == "incorrect" and by_values.pop("OFF_BY=0") in TIMED and not by_values
    if ended.returncode == 0:  # not so where the machine was too busy to time the one that is right
        body = json.loads(ended.stdout)
        assert Path(body["csv"]).resolve().is_relative_to(tmp_path) and body["best"]["parameters"] == {"OFF_BY": 0}
    else:
        assert "none of 2 choices of PARAMETERS is ok" in ended.stderr


def test_a_case_of_the_corpus_comes_out_on_a_cluster_as_its_header_says(nodes, tmp_path):
    ended = command(nodes, "selftest", "--adversarial", "--only", "wrong_shape", "--out", tmp_path, "--json")
    assert ended.returncode in (0, 3), ended.stderr  # 3 where eager could not be timed
    body = json.loads(ended.stdout)
    assert [(row["name"], row["outcome"]) for row in body["rows"]] == [("wrong_shape", "right")], body["rows"]
    assert [Path(path).is_file() for path in body["csv"]] == [True]


def test_eager_and_known_waits_are_timed_on_each_device_of_a_cluster(nodes, tmp_path):
    ended = command(nodes, "selftest", "--config", "quick", "--out", tmp_path, "--json")
    assert ended.returncode in (0, 3), ended.stderr  # 3 where the machine was too busy to be trusted
    body = json.loads(ended.stdout)
    [(device, found)] = body["devices"].items()
    assert device.endswith(":0") and len(found["waits"]) == 2 and body["as_expected"] is found["as_expected"]
    assert {row["problem"] for row in found["records"]} == {path.stem for path in (REPOSITORY / "problems").glob("*.yaml")}
    assert all(row["status"] in TIMED for row in found["records"]) and all(Path(path).is_file() for path in found["csv"])
