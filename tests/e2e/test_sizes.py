"""Several sizes in one run: a row for each candidate and size in one CSV, kept by --resume, understood by show."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[1] / "adversarial"
TWO = ("--sizes", "M=96", "--sizes", "M=64")

pytestmark = [pytest.mark.timeout(300), pytest.mark.alone]


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("sizes")
    bench.candidates([CORPUS / "honest" / "torch_masked.py", CORPUS / "form" / "returns_none.py"])
    return bench


@pytest.fixture(scope="module")
def ended(bench):
    return bench.end(bench.judge(bench.folder / "tril_small.yaml", bench.folder / "candidates", "cpu", *TWO, "--json"))


def test_one_csv_has_a_row_for_each_candidate_and_size(ended):
    assert ended.code == 0, ended.err
    with ended.csv_path.open(newline="", encoding="utf-8") as file:
        rows = [(row["candidate"], row["sizes"]) for row in csv.DictReader(file)]
    assert sorted(rows) == sorted(
        (name, sizes) for name in ("eager", "torch_masked", "returns_none") for sizes in ("M=96", "M=64")
    )


def test_what_is_wrong_at_a_size_has_no_mean(ended):
    [together] = json.loads(ended.out)["together"]
    assert (together["problem"], together["sizes"]) == ("tril_small", ["M=96", "M=64"])
    means = {each["candidate"]: each for each in together["means"]}
    assert means["returns_none"]["speedup"] is None and means["returns_none"]["missing"] == "incorrect at M=96"
    eager = means["eager"]
    assert eager["missing"] or eager["speedup_lo"] <= eager["speedup"] <= eager["speedup_hi"]


def test_show_has_the_other_size_on_a_line(bench, ended):
    shown = bench.run("show", ended.csv_path, "returns_none")
    assert shown.code == 0 and "M=96" in shown.out.splitlines()[0]
    assert "at M=64: incorrect" in shown.out


def test_resume_keeps_a_candidate_with_its_rows_at_all_sizes(bench, ended):
    again = bench.end(bench.judge(
        bench.folder / "tril_small.yaml", bench.folder / "candidates", "cpu", *TWO, "--resume", "--only",
        "returns_none",
    ))
    assert again.code == 0, again.err
    assert "reused 1 row of earlier runs" in again.err and again.csv_path == ended.csv_path


def test_several_sizes_do_not_go_with_what_is_for_one(bench):
    for flag in (["--watch"], ["--devices", "cuda:0,cuda:1"], ["--tune", "torch_masked"]):
        end = bench.run(bench.folder / "tril_small.yaml", *TWO, *flag, "--candidates", bench.folder / "candidates")
        word = "devices" if flag[0] == "--devices" else flag[0].removeprefix("--")
        assert end.code == 2 and re.search(f"{word}`? goes with one set of sizes", end.err), end.err
