"""What to type about a comparison that could not tell: the run once more, for longer, beside what there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from shipped import shipped

from harness.report.next_step import rerun, then_compare
from harness.results.reader import read_records

OLD = Path("old.csv")


@pytest.fixture(scope="module")
def tiled():
    """The record of tiled_shared on an H200, as `tiled(command)` would have measured it."""
    [path, *_] = shipped("results/tril_matmul/nvidia-h200/*.csv")
    [record] = [each for each in read_records(path) if each.candidate == "tiled_shared"]
    return lambda command: replace(record, command=command)


def test_the_run_is_made_again_with_the_candidates_in_question_and_for_longer(tiled):
    record = tiled("python run.py problems/tril_matmul.yaml --config quick --only 't*' --mode forward")
    assert rerun([record]) == (
        "python run.py problems/tril_matmul.yaml --mode forward --only tiled_shared --config rigorous"
    )


def test_a_run_that_did_not_record_its_command_gets_the_usual_one(tiled):
    assert rerun([tiled(None)]).startswith("python run.py problems/tril_matmul.yaml --only tiled_shared")


def test_a_folder_for_results_that_is_there_is_kept_and_looked_into(tiled, tmp_path):
    said = then_compare([tiled(f"python run.py problems/tril_matmul.yaml --out {tmp_path}")], OLD)
    assert f"--out {tmp_path} " in said
    assert said.endswith(f"compare old.csv {tmp_path}/tril_matmul/nvidia-h200")


def test_a_folder_of_another_machine_is_left_out(tiled, tmp_path):
    said = then_compare([tiled(f"python run.py problems/tril_matmul.yaml --out {tmp_path / 'gone'}")], OLD)
    assert "--out" not in said
    assert said.endswith("compare old.csv results/tril_matmul/nvidia-h200")
