"""What `--extra-times` and `--energy` put into a row, by the real command line, and what they leave out with a note.

On a GPU a call of 2048 keeps it busy whoever queues it, so that its times in a row, queued ahead and as a graph are
nearly one; the bounds here leave room for clocks that sink under load.
"""

from __future__ import annotations

import pytest

from harness.device.nvml import Nvml

TORCH = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        C = torch.tril(A @ B)
        {end}
"""
# Its kernel goes to the legacy default stream, which no graph of PyTorch's captures; what follows to the current one.
PLAIN_LAUNCH = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
__global__ void product_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void product(long long A, long long B, long long C, int M) {
  const dim3 grid((M + 15) / 16, (M + 15) / 16);
  product_kernel<<<grid, dim3(16, 16)>>>(reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B),
                                         reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = """
#include <pybind11/pybind11.h>
extern "C" void product(long long A, long long B, long long C, int M);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""

extension = load_inline("plain_launch", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        C = torch.empty_like(A)
        extension.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return torch.tril(C)
'''
CANDIDATES = {
    "captured": TORCH.format(end="return C"),
    "synchronises": TORCH.format(end="C[0, 0].item()\n        return C"),
    "wrong_in_a_graph": TORCH.format(end="return 2 * C if torch.cuda.is_current_stream_capturing() else C"),
    "plain_launch": PLAIN_LAUNCH,
}
WITH_GRADIENTS = """
title: Lower triangular product and its gradients
reference: tril_small.py
mode: forward_backward
sizes: {timed: {M: 1024}, check: [{M: 31}]}
accuracy: {class: fp32, scale: abs_inputs, terms: M, contracted: [1, 0]}
baselines: [eager]
kinds: [custom, library]
"""
ASKED = "--config", "quick", "--extra-times", "--energy"

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow, pytest.mark.alone]


def judged(bench, problem, sources, device, *words):
    """The rows of candidates with these sources; of one whose clock was doubted, which has no such times, from a
    further run. One that synchronises may stay in doubt: the device waits for its host, and nobody knows what that does.
    """
    folder = bench.candidates([])
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    words = (problem, folder, device, *ASKED, *words)
    end = bench.end(bench.judge(*words))
    assert end.code == 0, end.err[-2000:]
    rows = bench.judged_again(end, sources, *words)
    for name in sources:
        allowed = ("ok", "unsure") if name == "synchronises" else ("ok",)
        assert rows[name]["status"] in allowed, (name, rows[name]["reason"])
    return rows


@pytest.fixture(scope="module")
def on_gpu(new_bench):
    bench = new_bench("extras-cuda")
    return judged(bench, bench.folder / "tril_middle.yaml", CANDIDATES, "cuda:0")


def time_of(row, way):
    return float(row[f"{way}_us"] or "nan")  # which is neither more nor less than anything


def test_on_a_cpu_there_are_times_and_neither_a_graph_nor_energy(new_bench):
    bench = new_bench("extras-cpu")
    sources = {"captured": CANDIDATES["captured"]}
    row = judged(bench, bench.folder / "tril_middle.yaml", sources, "cpu")["captured"]
    assert time_of(row, "warm") > 0 and time_of(row, "back_to_back") > 0
    assert row["graph_us"] == row["joules"] == ""
    assert "no counter of it" in row["warnings"] and "CUDA graph" not in row["warnings"]


@pytest.mark.gpu
def test_a_call_that_keeps_the_device_busy_takes_as_long_in_a_row_as_in_a_graph(on_gpu):
    row = on_gpu["captured"]
    cold_us, warm_us, in_a_row_us = (time_of(row, way) for way in ("time", "warm", "back_to_back"))
    assert 0.5 * cold_us < warm_us < 1.2 * cold_us
    assert 0.7 * warm_us < in_a_row_us < 1.3 * max(warm_us, time_of(row, "e2e"))
    assert 0.7 * warm_us < time_of(row, "graph") < 1.2 * max(in_a_row_us, warm_us)
    assert "graph" not in row["warnings"] and "queued ahead" not in row["warnings"]


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in CANDIDATES if name != "synchronises"])
def test_energy_is_that_of_a_device_under_load_and_within_its_limit(on_gpu, name):
    """A GPU that idles takes a tenth to a sixth of what its limit allows, and one with products of fp32 half of it."""
    row = on_gpu[name]
    if Nvml(row["uuid"]).energy_mj() is None:
        assert row["joules"] == "" and "no counter of it" in row["warnings"]
        return
    watts = float(row["joules"] or "nan") / time_of(row, "back_to_back") * 1e6
    assert 0.2 * float(row["power_limit_w"]) < watts < 1.3 * float(row["power_limit_w"])


@pytest.mark.gpu
def test_a_call_that_synchronises_has_no_graph_and_a_note_that_says_so(on_gpu):
    row = on_gpu["synchronises"]
    assert row["graph_us"] == ""
    if row["status"] == "unsure":
        assert "by the judge's clock" in row["reason"] and row["back_to_back_us"] == ""
        return
    assert "it cannot be captured as a CUDA graph: " in row["warnings"]
    assert "operation not permitted when stream is capturing" in row["warnings"]
    assert "could not be queued ahead" in row["warnings"]
    # The host waits for each call, and the device for the host.
    assert time_of(row, "back_to_back") > 0.9 * time_of(on_gpu["captured"], "back_to_back")
    assert time_of(row, "warm") > 0.9 * time_of(on_gpu["captured"], "warm")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["wrong_in_a_graph", "plain_launch"])
def test_a_graph_whose_replays_give_something_else_has_no_time(on_gpu, name):
    """Of the plain launch the second half of the work is in the graph, and would go on with what the first left."""
    row = on_gpu[name]
    assert row["graph_us"] == ""
    assert time_of(row, "warm") > 0 and time_of(row, "back_to_back") > 0
    assert "its calls as a CUDA graph were not timed: " in row["warnings"]
    assert "only what is launched on PyTorch's current stream" in row["warnings"]


@pytest.mark.gpu
def test_both_passes_of_a_call_with_gradients_are_in_its_graph(new_bench):
    bench = new_bench("extras-gradients")
    problem = bench.folder / "gradients.yaml"
    problem.write_text(WITH_GRADIENTS, encoding="utf-8")
    row = judged(bench, problem, {"captured": CANDIDATES["captured"]}, "cuda:0")["captured"]
    # Forward alone is a third of it.
    assert time_of(row, "graph") > 0.6 * time_of(row, "time")
    assert time_of(row, "graph") < 1.2 * max(time_of(row, "back_to_back"), time_of(row, "warm"))
