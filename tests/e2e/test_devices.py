"""`--devices` as a person types it, on a CPU: two judges, one table; and what is refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[1] / "adversarial"
NAMES = ("returns_none", "raises_in_forward", "no_model_new", "wrong_shape")

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]


@pytest.fixture(scope="module")
def bench(new_bench):
    return new_bench("devices")


def words(bench):
    candidates = bench.candidates(CORPUS / "form" / f"{name}.py" for name in NAMES)
    return [bench.folder / "tril_small.yaml", "--candidates", candidates, "--config", bench.folder / "tiny.yaml",
            "--out", bench.folder / "results"]


@pytest.fixture(scope="module")
def ended(bench):
    """One run by two judges."""
    return bench.run(*words(bench), "--devices", "cpu,cpu", timeout_s=300)


def test_every_candidate_has_its_row_in_one_csv(ended):
    assert ended.code == 0, ended.err
    assert {row["status"] for row in ended.rows.values() if row["role"] == "candidate"} == {"incorrect", "build_failed"}
    assert set(ended.rows) == {*NAMES, "eager"}
    assert len(list(ended.results.rglob("*.csv"))) == 1


def test_there_is_one_leaderboard_and_progress_names_the_device(ended):
    assert ended.out.count("tril_small ·") == 1 and "--devices cpu,cpu" in ended.out
    told = [line.split(" ")[1] for line in ended.err.splitlines() if ": loading" in line]  # after the time of day
    assert told and set(told) <= {"cpu#0", "cpu#1"}
    assert "Traceback" not in ended.err


def test_nothing_is_left_behind(ended, bench):
    assert bench.left_behind() == []


def test_all_on_a_machine_without_a_gpu_is_its_cpu_in_one_sentence(bench, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    found = bench.run(*words(bench), "--devices", "all", "--only", "no_model_new", timeout_s=300)
    assert "--devices all means the CPU on this machine" in found.err


def test_json_names_every_file_of_results(bench):
    found = bench.run(*words(bench), "--devices", "cpu,cpu", "--only", "no_model_new", "--json", timeout_s=300)
    told = json.loads(found.out)
    assert told["csvs"] == [told["csv"]] and Path(told["csv"]).is_file()


def test_a_suite_gives_each_device_a_problem_at_a_time(bench, tmp_path):
    mine = tmp_path / "mine"
    for problem in ("tril_small", "tril_middle"):
        (mine / problem).mkdir(parents=True)
        source = (CORPUS / "form" / "returns_none.py").read_text(encoding="utf-8")
        (mine / problem / "returns_none.py").write_text(source, encoding="utf-8")
    found = bench.run(
        bench.folder / "tril_small.yaml", bench.folder / "tril_middle.yaml", "--candidates", mine, "--devices", "cpu,cpu",
        "--config", bench.folder / "tiny.yaml", "--out", tmp_path / "results", "--json", timeout_s=300,
    )
    problems = json.loads(found.out)["problems"]
    assert [each["problem"] for each in problems] == ["tril_middle", "tril_small"]
    own = [row for each in problems for row in each["records"] if row["role"] == "candidate"]
    assert [row["status"] for row in own] == ["incorrect", "incorrect"]
