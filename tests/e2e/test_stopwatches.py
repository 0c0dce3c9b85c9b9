"""Which stopwatch timed a row, through the real command line: the record says so, also where no compiler built ours."""

from __future__ import annotations

import shutil

import pytest

CANDIDATE = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(A @ B)
"""
WALLS = "bwrap", "unshare"
ON_GPU = pytest.mark.gpu

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]


@pytest.mark.parametrize(
    ("device", "has_compiler", "timer"),
    [
        ("cpu", True, "monotonic"),
        pytest.param("cuda:0", True, "native_events", marks=ON_GPU),
        pytest.param("cuda:0", False, "torch_events", marks=ON_GPU),
    ],
    ids=["cpu", "gpu", "gpu without a compiler"],
)
def test_the_row_names_the_stopwatch_that_timed_it(new_bench, device, has_compiler, timer):
    bench = new_bench("stopwatches")
    folder = bench.candidates([])
    (folder / "plain.py").write_text(CANDIDATE, encoding="utf-8")
    if not has_compiler:
        tools = bench.folder / "tools"
        tools.mkdir()
        for name in WALLS:
            if program := shutil.which(name):
                (tools / name).symlink_to(program)
        bench.environment.update(CXX="/nowhere/c++", PATH=str(tools))
    ended = bench.end(bench.judge(bench.folder / "tril_small.yaml", folder, device))
    assert ended.code == 0, ended.err[-2000:]
    for name in ("eager", "plain"):
        row = ended.rows[name]
        assert row["status"] in ("ok", "unsure"), row["reason"]
        assert (row["timer"], float(row["time_us"]) > 0) == (timer, True)
