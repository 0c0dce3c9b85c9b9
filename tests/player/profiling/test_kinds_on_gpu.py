"""The kind that comes of what the real profiler lists of a launch on a GPU."""

from __future__ import annotations

import pytest
import torch

from harness.provenance.kinds import Span, kind_on_gpu
from harness.provenance.symbols import gather

pytestmark = pytest.mark.gpu

RUN_TIME_SOURCE = """
extern "C" __global__ void twice(const float* a, float* c, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = 2.0f * a[i];
}
"""


@pytest.fixture
def kind_of(listed, tmp_path):
    """`kind_of(model)` for a candidate whose source defines the kernel of `RUN_TIME_SOURCE`."""
    source = tmp_path / "candidate.py"
    source.write_text(f"SOURCE = {RUN_TIME_SOURCE!r}\n", encoding="utf-8")

    def kind(model):
        found = listed(model, "cuda")
        spans = [Span(found["names"][index], start_us, time_us) for index, start_us, time_us in found["spans"]]
        return kind_on_gpu(spans, gather([], None, source, found["names"]))

    return kind


def test_on_a_gpu_pytorchs_product_is_a_librarys(kind_of):
    found = kind_of(torch.matmul)
    assert found.kind == "library", found
    assert found.busy_us > 100


def test_on_a_gpu_a_kernel_compiled_at_run_time_is_its_own(kind_of):
    kernel = torch.cuda._compile_kernel(RUN_TIME_SOURCE, "twice")

    def model(a, b):
        c = torch.zeros_like(a)
        kernel(grid=(264, 1, 1), block=(256, 1, 1), args=[a, c, a.numel()])
        return c

    found = kind_of(model)
    assert found.kind == "custom", found
    assert found.notes[0].startswith("twice: compiled while it ran")


def test_on_a_gpu_a_kernel_on_a_side_stream_takes_nothing_from_the_product_beside_it(kind_of):
    kernel, side = torch.cuda._compile_kernel(RUN_TIME_SOURCE, "twice"), torch.cuda.Stream()

    def model(a, b):
        c = torch.empty_like(a)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                kernel(grid=(8, 1, 1), block=(64, 1, 1), args=[a, c, 1 << 16], stream=side)
        product = torch.matmul(a, b)
        torch.cuda.current_stream().wait_stream(side)
        return product

    found = kind_of(model)
    assert found.kind in ("library", "mixed"), found
