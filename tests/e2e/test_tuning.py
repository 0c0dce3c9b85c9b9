"""`--tune` as a person types it, on a CPU and without a compiler: right values win over defaults that are wrong, the file is
written and counts.
"""

from __future__ import annotations

import json
import re

import pytest

from harness.model.candidate import read_candidate

WAYS = '''import time

import torch

PARAMETERS = {
    "WAY": ["wrong", "slow", "plain"],
    "SHIFT": [0, 1],
}
WAY, SHIFT = PARAMETERS["WAY"][0], PARAMETERS["SHIFT"][0]


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        if SHIFT:
            raise ValueError("shifts are not written yet")
        C = torch.tril(torch.matmul(A, B))
        if WAY == "slow":
            time.sleep(0.003)
        return C + 1 if WAY == "wrong" else C
'''

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("tuning")
    folder = bench.folder / "candidates"
    folder.mkdir()
    (folder / "ways.py").write_text(WAYS, encoding="utf-8")
    return bench


def words(bench):
    return [bench.folder / "tril_small.yaml", "--candidates", bench.folder / "candidates", "--device", "cpu",
            "--config", bench.folder / "tiny.yaml"]


@pytest.fixture(scope="module")
def told(bench):
    """What a search says with --json; done again where another load on the machine left it without a finding."""
    for _ in range(3):
        ended = bench.run(*words(bench), "--tune", "ways", "--json", "--out", bench.folder / "tuning", timeout_s=600)
        if ended.code == 0 and json.loads(ended.out)["best"]["parameters"]["WAY"] == "plain":
            break
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_every_combination_went_through_the_whole_judge(told):
    found = {(each["parameters"]["WAY"], each["parameters"]["SHIFT"]): each["record"] for each in told["trials"]}
    assert len(found) == 6
    assert found["wrong", 0]["status"] == "incorrect" and found["wrong", 0]["reason_code"] == "wrong_values"
    assert "ways.py" in found["plain", 1]["reason"] and "shifts are not written yet" in found["plain", 1]["reason"]
    assert found["plain", 0]["parameters"] == "WAY=plain SHIFT=0"
    assert len({each["source_hash"] for each in found.values()}) == 6


def test_the_fastest_that_is_right_wins_and_is_written_beside_the_file(told, bench):
    assert told["best"]["parameters"] == {"WAY": "plain", "SHIFT": 0} and told["why_not_written"] is None
    text = (bench.folder / "candidates" / "ways.yaml").read_text(encoding="utf-8")
    assert "WAY: plain" in text and "trials: 6" in text and re.search(r"tune \S+tril_small.yaml ways ", text)


def test_from_then_on_a_run_takes_these_values_and_records_them(told, bench):
    ended = bench.run(*words(bench), "--out", bench.folder / "results", timeout_s=300)
    row = ended.rows["ways"]
    assert row["parameters"] == "WAY=plain SHIFT=0"
    assert row["source_hash"] == told["best"]["record"]["source_hash"]
    assert row["status"] in ("ok", "unsure"), ended.err


def test_without_its_file_the_defaults_count(told, bench):
    found = read_candidate(bench.folder / "candidates" / "ways.py", tuned=False)
    assert found.parameters == "WAY=wrong SHIFT=0"


def test_where_none_of_them_could_run_the_exit_code_says_so(bench):
    path = bench.folder / "candidates" / "compiled.py"
    path.write_text(
        'import triton\n\nPARAMETERS = {"BM": [16, 32]}\n\n\n@triton.jit\ndef kernel(A):\n    pass\n\n\nclass ModelNew:\n    pass\n',
        encoding="utf-8",
    )
    ended = bench.run(*words(bench), "--tune", "compiled", "--out", bench.folder / "tuning", timeout_s=300)
    assert ended.code == 4 and "none of 2 choices of PARAMETERS is ok; with the defaults: " in ended.err
    path.unlink()


def test_where_no_choice_is_right_nothing_is_written(bench):
    path = bench.folder / "candidates" / "never.py"
    path.write_text(WAYS.replace("C + 1 if", "C + 1 if True or"), encoding="utf-8")
    ended = bench.run(*words(bench), "--tune", "never", "--out", bench.folder / "tuning", timeout_s=300)
    assert ended.code == 1 and "none of 6 choices of PARAMETERS is ok" in ended.err
    assert not path.with_suffix(".yaml").exists()
