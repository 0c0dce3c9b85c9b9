"""A run on a cluster by its command line and by real judges: the verdicts of one machine, and no row lost with a driver."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.model.candidate import read_candidate
from harness.model.places import REPOSITORY
from harness.runs.cluster import run
from harness.runs.cluster.link import Link

CORPUS = REPOSITORY / "tests" / "adversarial"
NAMES = ("returns_none", "no_model_new", "wrong_shape")
EXPECTED = {"returns_none": "incorrect", "no_model_new": "build_failed", "wrong_shape": "incorrect"}
COMPILED = '''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor nothing(torch::Tensor a, torch::Tensor b) { return torch::zeros_like(a); }
"""
made = load_inline(name="nothing_at_all", cpp_sources=SOURCE, functions=["nothing"])


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return made.nothing(A, B)
'''

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]


def own(result):
    return [record for record in result.records if record.role == "candidate"]


def statuses(result) -> dict[str, str]:
    return {record.candidate: record.status.value for record in own(result)}


def test_every_candidate_is_judged_once_with_the_verdict_that_one_machine_gives(nodes, request_for, tmp_path, listening):
    """On the node of the pretended A100; builds are made on both."""
    asked, path = request_for(NAMES), tmp_path / "compiled.py"
    path.write_text(COMPILED)
    told = listening()
    [result] = run.run(replace(asked, candidates=[*asked.candidates, read_candidate(path)]), Link("cpu", "A100"), told)
    assert statuses(result) == EXPECTED | {"compiled": "incorrect"}
    assert len(own(result)) == len(NAMES) + 1
    assert len({name.partition(" ")[0] for name, _ in told.stages}) == 1
    compiled = next(record for record in own(result) if record.candidate == "compiled")
    assert compiled.reason_code.value == "wrong_values" and compiled.build_s > 0
    lines = map(json.loads, result.csv_path.with_suffix(".jsonl").read_text().splitlines())
    paths = [line["samples"]["evidence"]["paths"] for line in lines if line["samples"].get("evidence")]
    assert paths and all(Path(each["problem"]).resolve() == (CORPUS / "tril_small.yaml").resolve() for each in paths)


def rows_in(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    """The candidates' rows of all CSVs, by problem and name; of several the newest."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted(folder.rglob("*.csv"), key=lambda path: path.stat().st_mtime):
        with path.open(newline="") as file:
            found |= {(row["problem"], row["candidate"]): row for row in csv.DictReader(file) if row["role"] == "candidate"}
    return found


def test_a_suite_loses_nothing_with_its_driver(nodes, tmp_path):
    """The driver is killed at its first verdict; the same command with --resume judges the rest and nothing again."""
    problems = [CORPUS / "tril_small.yaml", CORPUS / "transposed_small.yaml"]
    for problem in problems:
        (tmp_path / problem.stem).mkdir()
        for name in ("wrong_shape", "no_model_new"):
            (tmp_path / problem.stem / f"{name}.py").write_text((CORPUS / "form" / f"{name}.py").read_text())
    results = tmp_path / "results"
    words = [
        sys.executable, "run.py", *map(str, problems), "--candidates", str(tmp_path), "--ray", nodes.cluster.address,
        "--device", "cpu", "--accelerator", "A100", "--config", str(REPOSITORY / "configs" / "selftest.yaml"),
        "--baselines", "eager", "--out", str(results),
    ]
    driver = subprocess.Popen(words, cwd=REPOSITORY, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    told = []
    for line in driver.stderr:
        told.append(line)
        if "incorrect: " in line:
            driver.send_signal(signal.SIGKILL)
            break
    driver.wait()
    before = {key: row["run_id"] for key, row in rows_in(results).items()}
    assert before, "".join(told)
    again = subprocess.run([*words, "--resume", "--json"], cwd=REPOSITORY, capture_output=True, text=True, timeout=200)
    assert again.returncode == 0, again.stderr
    after = rows_in(results)
    assert {key: row["status"] for key, row in after.items()} == {
        (problem.stem, name): status for problem in problems
        for name, status in (("wrong_shape", "incorrect"), ("no_model_new", "build_failed"))
    }
    assert {key: after[key]["run_id"] for key in before} == before
