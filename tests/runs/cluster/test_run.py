"""A run on a cluster by its command line, with real judges: the verdicts of one machine, and nothing lost with a driver."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.model.paths import REPOSITORY

CORPUS = REPOSITORY / "tests" / "adversarial"
EXPECTED = {"wrong_shape": "incorrect", "no_model_new": "build_failed", "compiled": "incorrect"}
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


def rows_in(folder: Path) -> dict[str, dict[str, str]]:
    """The candidates' rows of all CSVs by name; of several the newest."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(folder.rglob("*.csv"), key=lambda path: path.stat().st_mtime):
        with path.open(newline="") as file:
            found |= {row["candidate"]: row for row in csv.DictReader(file) if row["role"] == "candidate"}
    return found


def test_a_run_has_the_verdicts_of_one_machine_and_loses_nothing_with_its_driver(nodes, tmp_path):
    """The driver is killed at a verdict; the same command with --resume judges the rest, and nothing again.

    Builds are made on both nodes, and loaded on the one with the pretended A100.
    """
    mine, results = tmp_path / "mine", tmp_path / "results"
    mine.mkdir()
    for name in ("wrong_shape", "no_model_new"):
        (mine / f"{name}.py").write_text((CORPUS / "form" / f"{name}.py").read_text())
    (mine / "compiled.py").write_text(COMPILED)
    words = [
        sys.executable, "run.py", str(CORPUS / "tril_small.yaml"), "--candidates", str(mine), "--ray", nodes.cluster.address,
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
    before = {name: row["run_id"] for name, row in rows_in(results).items()}
    assert before and len(before) < len(EXPECTED), "".join(told)
    again = subprocess.run([*words, "--resume", "--json"], cwd=REPOSITORY, capture_output=True, text=True, timeout=200)
    assert again.returncode == 0, again.stderr
    after = rows_in(results)
    assert {name: row["status"] for name, row in after.items()} == EXPECTED
    assert {name: after[name]["run_id"] for name in before} == before
    lines = [json.loads(line) for path in results.rglob("*.jsonl") for line in path.read_text().splitlines()]
    paths = [line["samples"]["evidence"]["paths"] for line in lines if line["samples"].get("evidence")]
    assert paths and all(Path(each["problem"]).resolve() == (CORPUS / "tril_small.yaml").resolve() for each in paths)
    # What was compiled on any node was loaded, as it came, where it was judged.
    assert after["compiled"]["reason_code"] == "wrong_values" and float(after["compiled"]["build_s"]) > 0
