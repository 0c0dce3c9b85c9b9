"""`--baseline FILE` as a person types it: a file in eager's place, judged as any other and in no row's way."""

from __future__ import annotations

import csv
import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[1] / "adversarial"
REPOSITORY = Path(__file__).resolve().parents[2]
EXPERT = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.matmul(A, B).tril_()
"""
_MOST_RUNS = 5

pytestmark = [pytest.mark.timeout(900), pytest.mark.alone]


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("own_baseline")
    bench.candidates([CORPUS / "honest" / "torch_masked.py"])
    (bench.folder / "expert.py").write_text(EXPERT)
    for name in ("returns_none", "no_model_new"):
        shutil.copy(CORPUS / "form" / f"{name}.py", bench.folder)
    return bench


def judged(bench, results, *words, problem="tril_middle", device="cpu"):
    """A run whose files lie in a folder of results of its own."""
    folder = bench.folder / results
    words = (*words, "--out", folder)
    ended = bench.end(bench.judge(bench.folder / f"{problem}.yaml", bench.folder / "candidates", device, *words))
    return replace(ended, results=folder)


@pytest.fixture(scope="module")
def ended(bench):
    """A run in which the expert's file and a row over it could be timed; a shared CPU may disturb some before it."""
    for number in range(_MOST_RUNS):
        found = judged(bench, f"ended-{number}", "--baseline", bench.folder / "expert.py")
        if any(row["speedup"] for row in found.rows.values()):
            return found
    pytest.skip("this machine is too busy to time anything on")


def test_every_row_is_over_the_file_and_says_so(ended):
    assert ended.code == 0, ended.err
    rows = ended.rows
    assert set(rows) == {"eager", "expert", "torch_masked"}
    assert {row["baseline"] for row in rows.values()} == {"expert"}
    assert {row["baseline_hash"] for row in rows.values()} == {rows["expert"]["source_hash"]}
    assert rows["expert"]["role"] == "baseline" and rows["expert"]["speedup"] == ""


def test_the_speedup_is_the_quotient_of_two_over_eager_with_the_wider_interval(ended):
    row, its = next(row for row in ended.rows.values() if row["speedup"]), ended.rows["expert"]
    assert float(row["speedup"]) == pytest.approx(float(row["eager_speedup"]) / float(its["eager_speedup"]))
    width = math.log(float(row["speedup_hi"]) / float(row["speedup"]))
    above = math.log(float(row["eager_speedup_hi"]) / float(row["eager_speedup"]))
    below = math.log(float(its["eager_speedup"]) / float(its["eager_speedup_lo"]))
    assert width == pytest.approx(math.hypot(above, below))


def test_the_file_is_checked_and_traced_as_any_other(ended):
    row = ended.rows["expert"]
    assert row["kind"] in ("library", "unknown") and float(row["err_max_u"]) >= 0 and row["sandbox"]
    assert ended.rows["eager"]["kind"] == ""


def test_the_header_and_the_command_name_the_file(ended):
    assert "speedup over expert" in ended.out and "speedup over eager" not in ended.out.split("[ ]")[0]
    assert f"--baseline {ended.results.parent}/expert.py" in ended.rows["eager"]["command"]


def test_the_yaml_may_name_it_instead(bench):
    yaml = (bench.folder / "tril_small.yaml").read_text() + "baseline: expert.py\n"
    (bench.folder / "with_expert.yaml").write_text(yaml)
    found = judged(bench, "yaml", "--json", problem="with_expert")
    records = {record["candidate"]: record for record in json.loads(found.out)["records"]}
    assert {record["baseline_hash"] for record in records.values()} == {records["expert"]["source_hash"]}


def test_over_a_file_that_is_wrong_no_row_has_a_speedup_and_one_sentence_says_why(bench):
    found = judged(bench, "wrong", "--baseline", bench.folder / "returns_none.py", problem="tril_small")
    assert found.code == 2
    assert found.err.splitlines()[-1].startswith(
        "the baseline returns_none is incorrect, so no row has a speedup over it: "
    )
    assert set(found.rows) == {"eager", "returns_none", "torch_masked"}
    assert {row["speedup"] for row in found.rows.values()} == {""}
    assert "note: no speedup over returns_none: that baseline is incorrect" in found.out


@pytest.mark.parametrize(("name", "says"), [
    ("none.py", "there is no such file of a baseline"),
    ("no_model_new.py", "the harness runs the class named ModelNew"),
    ("torch_masked.py", "torch_masked is the name of the baseline and of a candidate"),
])
def test_a_file_that_cannot_be_a_baseline_is_one_sentence_and_nothing_is_judged(bench, name, says):
    (bench.folder / "torch_masked.py").write_text(EXPERT)
    found = judged(bench, "none", "--baseline", bench.folder / name)
    assert found.code == 2 and found.out == "" and found.err.count("\n") == 1 and says in found.err
    assert not (bench.folder / "none").exists()


def test_a_suite_and_a_search_for_values_have_no_single_baseline(bench):
    file = ("--baseline", bench.folder / "expert.py")
    suite = bench.run(bench.folder / "tril_small.yaml", bench.folder / "tril_middle.yaml", *file)
    assert suite.code == 2 and "--baseline is for one problem" in suite.err
    search = bench.run(bench.folder / "tril_small.yaml", "--tune", "mine", *file)
    assert search.code == 2 and "--baseline does not go with `tune`" in search.err


def test_a_job_of_serve_may_name_one_and_a_candidate_of_its_name_costs_one_answer(bench):
    job = {"problem": str(bench.folder / "tril_small.yaml"), "source": EXPERT, "baseline": str(bench.folder / "expert.py")}
    jobs = [{**job, "name": name} for name in ("mine", "expert")]
    done = subprocess.run(
        [sys.executable, "run.py", "serve", "--device", "cpu", "--config", str(bench.folder / "tiny.yaml")],
        input="".join(f"{json.dumps(each)}\n" for each in jobs), cwd=REPOSITORY, env=bench.environment,
        capture_output=True, text=True, timeout=600, check=False,
    )
    mine, clash = map(json.loads, done.stdout.splitlines())
    assert (mine["record"]["baseline"], len(mine["record"]["baseline_hash"])) == ("expert", 16)
    assert clash["error"]["kind"] == "input" and "of the baseline and of a candidate" in clash["error"]["message"]


def test_each_of_two_judges_judges_it_beside_its_own_control(bench):
    words = "--baseline", bench.folder / "expert.py", "--devices", "cpu,cpu"
    found = judged(bench, "two", *words, problem="tril_small", device="auto")
    with found.csv_path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file)]
    by_run: dict[str, set[str]] = {}
    for row in rows:
        by_run.setdefault(row["run_id"], set()).add(row["candidate"])
        assert row["baseline_hash"], row["candidate"]
    assert "Traceback" not in found.err
    assert all(names >= {"eager", "expert"} for names in by_run.values()), by_run
    assert [row["candidate"] for row in rows].count("torch_masked") == 1
