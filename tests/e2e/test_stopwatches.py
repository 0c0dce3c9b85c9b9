"""Which stopwatch timed a row, through the real command line: the record says so, also where no compiler built ours."""

from __future__ import annotations

import pytest

CANDIDATE = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(A @ B)
"""
ON_GPU = pytest.mark.gpu
NO_COMPILER = {"CXX": "/nowhere/c++", "PATH": "/nowhere"}

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]


@pytest.mark.parametrize(
    ("device", "environment", "timer"),
    [
        ("cpu", {}, "monotonic"),
        pytest.param("cuda:0", {}, "native_events", marks=ON_GPU),
        pytest.param("cuda:0", NO_COMPILER, "torch_events", marks=ON_GPU),
    ],
    ids=["cpu", "gpu", "gpu without a compiler"],
)
def test_the_row_names_the_stopwatch_that_timed_it(new_bench, device, environment, timer):
    bench = new_bench("stopwatches")
    folder = bench.candidates([])
    (folder / "plain.py").write_text(CANDIDATE, encoding="utf-8")
    bench.environment.update(environment)
    ended = bench.end(bench.judge(bench.folder / "tril_small.yaml", folder, device))
    assert ended.code == 0, ended.err[-2000:]
    for name in ("eager", "plain"):
        row = ended.rows[name]
        assert row["status"] in ("ok", "unsure"), row["reason"]
        assert (row["timer"], float(row["time_us"]) > 0) == (timer, True)
