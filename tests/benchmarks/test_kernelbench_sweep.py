"""Which problems of a checkout are swept over, what is left of them, and one of them judged by the command itself."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import pytest

from harness.model.errors import InputError
from harness.model.paths import REPOSITORY

SCALED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x * {factor}

def get_inputs():
    return [torch.rand(64, 64)]
"""


@pytest.fixture(scope="module")
def sweep(benchmark_named):
    return benchmark_named("kernelbench_sweep")


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "KernelBench" / "level1"
    folder.mkdir(parents=True)
    for name, factor in (("10_Tripled", 3.1), ("2_Doubled", 2.2), ("1_Nothing", 0)):
        (folder / f"{name}.py").write_text(SCALED.format(factor=factor))
    (folder / "notes.py").write_text("")
    return tmp_path


def test_problems_are_found_by_level_and_number_in_a_checkout_or_its_inner_folder(sweep, checkout):
    files = sweep.problem_files(checkout, [1])
    assert list(files) == ["1/1", "1/2", "1/10"]
    assert sweep.problem_files(checkout / "KernelBench", [1]) == files
    with pytest.raises(InputError, match="has no folder level2"):
        sweep.problem_files(checkout, [1, 2])


def test_shares_are_disjoint_and_together_all(sweep, checkout):
    files = sweep.problem_files(checkout, [1])
    shares = [sweep.chosen(files, [], (number, 2)) for number in (1, 2)]
    assert [list(each) for each in shares] == [["1/1", "1/10"], ["1/2"]]
    assert list(sweep.chosen(files, ["1/10", "1/1"], (1, 1))) == ["1/1", "1/10"]
    with pytest.raises(InputError, match="--only 1/3: there is no such problem"):
        sweep.chosen(files, ["1/3"], (1, 1))
    assert sweep.share_of("2/3") == (2, 3)
    with pytest.raises(argparse.ArgumentTypeError, match="the second of three is 2/3"):
        sweep.share_of("4/3")


def test_what_has_a_line_is_left_out_but_for_what_is_to_be_retried_or_had_other_memory(sweep, checkout):
    files = sweep.problem_files(checkout, [1])
    line = {"problem": "1/1", "candidate": "honest", "status": "ok", "memory_gb": None, "is_shrunk": False}
    earlier = [line, {**line, "candidate": "zeros", "status": "unsure"}, {**line, "problem": "1/2", "memory_gb": 24.0}]

    def left(retried=(), memory_gb=None):
        tasks = sweep.tasks_left(files, ("honest", "zeros"), earlier, retried, memory_gb, False)
        return {task.key: task.candidates for task in tasks}

    both = ("honest", "zeros")
    assert left() == {"1/2": both, "1/10": both}
    assert left(["unsure"]) == {"1/1": ("zeros",), "1/2": both, "1/10": both}
    assert left(memory_gb=24.0) == {"1/1": both, "1/2": ("zeros",), "1/10": both}


@pytest.mark.slow
def test_the_command_judges_a_problem_and_does_not_judge_it_again(checkout, tmp_path):
    out = tmp_path / "sweep.jsonl"
    config = tmp_path / "short.yaml"
    config.write_text("{half_width: 0.2, budget_s: 0.1, looks: [5], players: 1, warmup_s: 0.05, check_launches: 2}")
    command = [
        sys.executable, str(REPOSITORY / "benchmarks" / "kernelbench_sweep.py"), str(checkout), "--out", str(out), "--levels", "1",
        "--only", "1/2", "--variants", "honest", "bf16", "--device", "cpu", "--config", str(config),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = {each["candidate"]: each for each in map(json.loads, out.read_text().splitlines())}
    assert set(lines) == {"eager", "honest", "bf16"}
    assert lines["honest"]["status"] in ("ok", "unsure"), "a machine that is not quiet is not the copy's fault"
    assert lines["bf16"]["status"] == "imprecise"
    assert lines["bf16"]["worst"]["max_u"] > lines["bf16"]["worst"]["allowed_max_u"]
    assert lines["bf16"]["seconds"] > 0 and lines["bf16"]["device_peak_bytes"] > 0
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (again.returncode, "0 of 1 problems are left" in again.stderr) == (0, True)
    assert len(out.read_text().splitlines()) == 3
