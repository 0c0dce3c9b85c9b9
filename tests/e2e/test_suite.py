"""Many problems in one command, run in a subprocess: bad ones among good ones, what is kept, one summary."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures/kernelbench"

pytestmark = [
    pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile on a CPU needs a C++ compiler"),
]

DIES = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def suite(new_bench):
    """`suite(*words)`: the suite of four problems run, with --json; `suite.candidates` is the folder of candidates."""
    bench = new_bench("suite")
    level, candidates = bench.folder / "level1", bench.folder / "mine"
    (candidates / "1_linear_relu").mkdir(parents=True)
    level.mkdir()
    shutil.copy(FIXTURES / "linear_relu.py", level / "1_linear_relu.py")
    shutil.copy(FIXTURES / "two_outputs.py", level / "2_two_outputs.py")
    (level / "3_broken.py").write_text("class Model: pass\n", encoding="utf-8")
    (level / "4_dies.py").write_text(DIES, encoding="utf-8")
    for name in ("correct", "forgets_bias"):
        shutil.copy(FIXTURES / f"linear_relu_candidates/{name}.py", candidates / "1_linear_relu")
    correct = FIXTURES / "two_outputs_candidates/correct.py"
    shutil.copy(correct, candidates / "level_1_problem_2_sample_0_kernel.py")
    shutil.copy(correct, candidates / "4_dies_mine.py")

    def run(*words: str):
        ended = bench.end(bench.judge(f"{level}/*.py", candidates, "cpu", "--json", *words))
        return ended, {each["problem"]: each for each in json.loads(ended.out)["problems"]}

    run.candidates = candidates
    return run


def own(problem) -> dict[str, tuple[str, str]]:
    records = [each for each in problem["records"] if each["role"] == "candidate"]
    return {each["candidate"]: (each["status"], each["utc"]) for each in records}


def held(problem) -> dict[str, tuple[str, str]]:
    """The rows that another run may keep: a busy machine leaves some honest ones unsure, and those are tried again."""
    return {name: row for name, row in own(problem).items() if row[0] != "unsure"}


def test_bad_problems_cost_their_own_line_and_resume_judges_only_what_has_changed(suite):
    ended, first = suite()
    assert ended.code == 0, ended.err[-2000:]
    relu = own(first["1_linear_relu"])
    assert relu["correct"][0] in ("ok", "unsure") and relu["forgets_bias"][0] == "incorrect"
    assert [status in ("ok", "unsure") for status, _ in own(first["2_two_outputs"]).values()] == [True]
    assert "no function get_inputs" in first["3_broken"]["fault"] and "SIGKILL" in first["4_dies"]["fault"]
    [scores] = json.loads(ended.out)["scores"]
    assert (scores["best_of_each_problem"]["n"], scores["every_candidate"]["correct"]) == (2, 2)

    edited = suite.candidates / "1_linear_relu/forgets_bias.py"
    edited.write_text(edited.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    _, again = suite("--resume")
    kept = held(first["1_linear_relu"]).keys() - {"forgets_bias"}
    found = again["1_linear_relu"]
    assert found["reused"] == len(kept) and found["csv"] != first["1_linear_relu"]["csv"]
    for name, row in own(found).items():
        assert (row == relu[name]) if name in kept else (row[1] > relu[name][1]), name
    if held(first["2_two_outputs"]):  # all of it holds: nothing is run, nothing written
        assert (again["2_two_outputs"]["reused"], again["2_two_outputs"]["csv"]) == (1, first["2_two_outputs"]["csv"])
