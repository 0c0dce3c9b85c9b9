"""A GPU judges what is ready while compilers are busy with the rest, and builds nothing twice."""

from __future__ import annotations

import csv
import time

import pytest

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.gpu]

BUILDS_FOR_S = 25
QUICK = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        return torch.tril(A @ B)
"""
# A compiler's time, without a compiler: a builder has this module, and a worker has not.
SLOW = f"""
import sys, time

if "harness.build.extension_maker" in sys.modules:
    time.sleep({BUILDS_FOR_S})
{QUICK}"""


@pytest.fixture(scope="module")
def bench(new_bench):
    bench = new_bench("building_beside")
    bench.settings(load_timeout_s=60)  # an import that compiles nothing is stopped after that
    folder = bench.candidates([])
    (folder / "a_slow.py").write_text(SLOW)
    for name in ("b_quick", "c_quick"):
        (folder / f"{name}.py").write_text(f"{QUICK}# {name}\n")
    return bench


def rows_so_far(folder):
    return {row["candidate"]: row for path in folder.glob("**/*.csv") for row in csv.DictReader(path.open())}


def test_the_gpu_judges_those_that_are_ready_while_another_is_built_and_a_warm_run_waits_for_no_build(bench):
    words = bench.folder / "tril_small.yaml", bench.folder / "candidates", "cuda"
    began = time.monotonic()
    running = bench.judge(*words)
    seen: dict[str, float] = {}
    while running.poll() is None and time.monotonic() - began < 200:
        for name in rows_so_far(bench.folder / "results"):
            seen.setdefault(name, time.monotonic() - began)
        time.sleep(0.1)
    ended = bench.end(running)
    assert {row["status"] for row in ended.rows.values()} == {"ok"}, ended.out
    assert max(seen["b_quick"], seen["c_quick"]) < BUILDS_FOR_S < seen["a_slow"]
    assert float(ended.rows["a_slow"]["build_s"]) >= BUILDS_FOR_S
    began = time.monotonic()
    again = bench.end(bench.judge(*words, "--out", bench.folder / "again"))
    assert time.monotonic() - began < BUILDS_FOR_S
    assert {row["status"] for row in rows_so_far(bench.folder / "again").values()} == {"ok"}, again.err
