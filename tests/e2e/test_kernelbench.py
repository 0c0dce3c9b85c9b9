"""References and candidates written for KernelBench, unmodified: parameters, several outputs, integer inputs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "kernelbench"
PROBLEMS = ("linear_relu", "two_outputs")
DEVICES = ["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)]
CANDIDATES = [
    (problem, path) for problem in PROBLEMS for path in sorted((FOLDER / f"{problem}_candidates").glob("*.py"))
]

pytestmark = [
    pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone,
    pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile on a CPU needs a C++ compiler"),
]


@pytest.fixture(scope="module")
def runs(new_bench):
    """`runs(device)`: how the run of each problem ended, one after the other: beside another no time is a time."""
    made = {}

    def run(device: str):
        if device not in made:
            benches = {problem: new_bench(f"{problem}-{device[:4]}") for problem in PROBLEMS}
            ends = {
                problem: bench.end(bench.judge(FOLDER / f"{problem}.py", FOLDER / f"{problem}_candidates", device))
                for problem, bench in benches.items()
            }
            made[device] = {
                problem: (end, rows_of(problem, device, benches[problem], end)) for problem, end in ends.items()
            }
        return made[device]

    def rows_of(problem, device, bench, end):
        names = [path.stem for each, path in CANDIDATES if each == problem and device == "cpu"]
        names += ["eager", "torch.compile"] if device == "cpu" else []
        return bench.judged_again(end, names, FOLDER / f"{problem}.py", FOLDER / f"{problem}_candidates", device)

    return run


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("problem", "path"), CANDIDATES, ids=lambda value: getattr(value, "stem", value))
def test_a_candidate_gets_the_verdict_that_its_docstring_expects(runs, expected, device, problem, path):
    _, rows = runs(device)[problem]
    row = rows[path.stem]
    assert f"{row['status']}/{row['reason_code']}" in expected(path), row["reason"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_eager_and_torch_compile_stand_in_the_table_as_baselines(runs, device, problem):
    end, rows = runs(device)[problem]
    assert end.code == 0, end.err[-2000:]
    for name in ("eager", "torch.compile"):
        row = rows[name]
        assert (row["role"], row["rank"]) == ("baseline", "")
        assert row["status"] == "ok", row["reason"]
        assert float(row["time_us"]) > 0
        assert name in end.out


@pytest.mark.parametrize("device", DEVICES)
def test_without_formulas_there_is_no_speed_of_light(runs, device):
    row = runs(device)["linear_relu"][1]["eager"]
    assert row["sol_us"] == row["tflops"] == row["percent_of_sol"] == row["floor_us"] == ""


def test_at_sizes_that_were_asked_for_a_file_is_judged_as_at_its_own(new_bench):
    """The right one is right there too, and the wrong one is wrong."""
    bench, candidates = new_bench("linear_relu-sizes"), FOLDER / "linear_relu_candidates"
    words = (FOLDER / "linear_relu.py", candidates, "cpu", "--sizes", "batch_size=16,in_features=96")
    end = bench.end(bench.judge(*words, "--only", "correct", "--only", "forgets_bias"))
    assert end.code == 0, end.err[-2000:]
    assert {row["sizes"] for row in end.rows.values()} == {"batch_size=16 in_features=96"}
    assert end.rows["correct"]["status"] in ("ok", "unsure"), end.rows["correct"]["reason"]
    assert end.rows["forgets_bias"]["status"] == "incorrect"


def test_parameters_that_all_cores_draw_are_the_same_in_judge_and_worker(new_bench):
    """A weight of 2^24 elements: with other numbers in it no output would be right."""
    bench, candidates = new_bench("linear_relu-large"), FOLDER / "linear_relu_candidates"
    words = (FOLDER / "linear_relu.py", candidates, "cpu", "--sizes", "batch_size=4,in_features=4096,out_features=4096")
    end = bench.end(bench.judge(*words, "--only", "correct"))
    assert end.code == 0, end.err[-2000:]
    assert end.rows["correct"]["status"] in ("ok", "unsure"), end.rows["correct"]["reason"]
    assert end.rows["eager"]["status"] in ("ok", "unsure"), end.rows["eager"]["reason"]
