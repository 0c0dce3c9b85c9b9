"""Real kernels under the real tool: each kind of mistake is found, and an honest kernel is left in peace."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.model.verdict import ReasonCode
from harness.tools.sanitizer.compute_sanitizer import find_tool

REPOSITORY = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(find_tool() is None, reason="there is no compute-sanitizer here"),
]
CANDIDATE = '''
import torch

SOURCE = r"""
{source}
"""
kernel = torch.cuda._compile_kernel(SOURCE, "{name}")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = {output}
        n = x.numel()
        kernel(grid=((n + 255) // 256, 1, 1), block=(256, 1, 1), args=[x, y, n])
        return y
'''
REFERENCE = """
import torch

N = 8192


class Model(torch.nn.Module):
    def forward(self, x):
        return 2.0 * x


def get_inputs():
    return [torch.rand(N)]
"""
PROBLEM = """
title: Twice
reference: double.py
sizes: {timed: {N: 8192}, check: [{N: 1}, {N: 1024}, {N: 2048}]}
baselines: [eager]
"""
HONEST = """
extern "C" __global__ void reverse_blocks(const float* x, float* y, int n) {
  __shared__ float tile[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  const float other = tile[255 - threadIdx.x];
  if (i < n) y[i] = 2.0f * x[i] + 0.0f * other;
}"""
MISTAKES = {
    "beyond_its_output": (ReasonCode.MEMORY_ERROR, "Invalid __global__ write of size 4 bytes", """
extern "C" __global__ void beyond_its_output(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
  if (i == 0) y[n] = 1.0f;
}"""),
    "beyond_its_input": (ReasonCode.MEMORY_ERROR, "Invalid __global__ read of size 4 bytes", """
extern "C" __global__ void beyond_its_input(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i];
  if (i == 0 && x[n] == 123.456f) y[0] += 1.0f;
}"""),
    "no_barrier": (ReasonCode.RACE, "Race reported between", """
extern "C" __global__ void no_barrier(const float* x, float* y, int n) {
  __shared__ float tile[256];
  const int i = blockIdx.x * 256 + threadIdx.x;
  tile[threadIdx.x] = i < n ? x[i] : 0.0f;
  const float other = tile[255 - threadIdx.x];
  if (i < n) y[i] = 2.0f * x[i] + 0.0f * other;
}"""),
    "adds_to_what_was_there": (ReasonCode.UNINITIALIZED, "Uninitialized __global__ memory read of size 4 bytes", """
extern "C" __global__ void adds_to_what_was_there(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) y[i] = 2.0f * x[i] + 0.0f * y[i];
}"""),
    "half_waits": (ReasonCode.BARRIER, "Barrier error detected", """
extern "C" __global__ void half_waits(const float* x, float* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (threadIdx.x % 64 < 48) __syncthreads();
  if (i < n) y[i] = 2.0f * x[i];
  if (threadIdx.x % 64 >= 48) __syncthreads();
}"""),
}


def write(folder, name, source, output="torch.empty_like(x)"):
    path = folder / f"{name}.py"
    path.write_text(CANDIDATE.format(source=source, name=name, output=output), encoding="utf-8")
    return path


def examined(path):
    from harness.attribution.source_names import source_text
    from harness.device.cuda import CudaBackend
    from harness.judge.sanitize import open_examiner
    from harness.tools.launch_files import SmallLaunch
    from harness.tools.sanitizer.examination import Uses

    examiner = open_examiner(CudaBackend(0))
    # 1024 floats end where the next allocation would begin.
    launch = SmallLaunch(str(path), {}, 1, [], [torch.rand(1024)], "cuda:0")
    return examiner.examine(launch, Uses(source_text(path)), lambda text: None)


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_found_by_its_tool_and_told_in_its_words(tmp_path, name):
    code, words, source = MISTAKES[name]
    found = examined(write(tmp_path, name, source))
    assert found.raised is None
    assert found.verdict is not None, found.warnings
    assert found.verdict.reason_code is code, found.verdict.reason
    assert words in found.verdict.reason
    assert name in found.verdict.reason


def test_an_honest_kernel_has_no_findings_and_no_warnings(tmp_path):
    found = examined(write(tmp_path, "reverse_blocks", HONEST))
    assert (found.verdict, found.warnings, found.raised) == (None, (), None)


def test_memory_that_pytorch_fills_counts_as_written(tmp_path):
    source = MISTAKES["adds_to_what_was_there"][2]
    found = examined(write(tmp_path, "adds_to_what_was_there", source, "torch.ones_like(x)"))
    assert (found.verdict, found.warnings, found.raised) == (None, (), None)


def test_the_flag_turns_a_right_kernel_with_a_hidden_mistake_into_an_incorrect_one(tmp_path):
    (tmp_path / "double.py").write_text(REFERENCE)
    (tmp_path / "double.yaml").write_text(PROBLEM)
    folder = tmp_path / "candidates"
    folder.mkdir()
    write(folder, "reverse_blocks", HONEST)
    write(folder, "beyond_its_input", MISTAKES["beyond_its_input"][2])
    words = [tmp_path / "double.yaml", "--config", "quick", "--candidates", folder, "--out", tmp_path / "out"]
    ran = subprocess.run(
        [sys.executable, "run.py", *map(str, words), "--device", "cuda:0", "--sanitize"], cwd=REPOSITORY, text=True,
        capture_output=True, timeout=900, check=False,
        env={**os.environ, "KERNEL_REFEREE_CACHE": str(tmp_path / "cache")},
    )
    assert ran.returncode == 0, ran.stderr
    with next(tmp_path.rglob("*.csv")).open(newline="", encoding="utf-8") as file:
        rows = {row["candidate"]: row for row in csv.DictReader(file)}
    assert rows["reverse_blocks"]["status"] == "ok", rows["reverse_blocks"]
    assert rows["reverse_blocks"]["kind"] == "custom", rows["reverse_blocks"]
    found = rows["beyond_its_input"]
    assert (found["status"], found["reason_code"]) == ("incorrect", "memory_error"), found
    assert found["rank"] == found["time_us"] == ""
