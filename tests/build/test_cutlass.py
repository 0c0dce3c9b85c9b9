"""A candidate that includes CUTLASS from its wheel: built with the slim headers, kept, and built anew for another CUTLASS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.model.verdict import Status

from .conftest import needs_nvcc

pytest.importorskip("cutlass_library")

pytestmark = pytest.mark.processes

CANDIDATE = '''
from pathlib import Path

import cutlass_library
import torch
from torch.utils.cpp_extension import load_inline

CUTLASS = Path(cutlass_library.__file__).parent / "source" / "include"
extension = load_inline(
    "scaled", "torch::Tensor scaled(torch::Tensor x);", r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <cute/tensor.hpp>
#include <cutlass/numeric_conversion.h>

template <class Layout>
__global__ void scale(const float* x, float* y, Layout layout) {
    auto from = cute::make_tensor(cute::make_gmem_ptr(x), layout);
    auto to = cute::make_tensor(cute::make_gmem_ptr(y), layout);
    cutlass::NumericConverter<cutlass::tfloat32_t, float> narrow;
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < cute::size(layout)) to(index) = float(narrow(from(index)));
}

torch::Tensor scaled(torch::Tensor x) {
    auto y = torch::empty_like(x);
    auto layout = cute::make_layout(cute::make_shape(int(x.size(0)), int(x.size(1))), cute::LayoutRight{});
    scale<<<(x.numel() + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), layout);
    return y;
}
""", functions=["scaled"], extra_include_paths=[str(CUTLASS)], extra_cuda_cflags=["-O3", "--expt-relaxed-constexpr"],
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.scaled(x)
'''


@needs_nvcc
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_candidate_with_cutlass_is_built_slim_and_kept_with_all_that_it_read(build_pool):
    candidate = build_pool.write("with_cutlass", CANDIDATE)
    (build,) = build_pool.build(candidate)
    assert build.verdict.status is Status.COMPILED, build.verdict.reason
    assert build.headers == "slim", build.log[-2000:]
    assert [kernel.spill_bytes for kernel in build.kernels] == [0]
    (again,) = build_pool.build(candidate)
    assert again.cached
    read = {Path(name).name for folder in (build_pool.cache.root / "entries").iterdir() for name in _files_of(folder)}
    assert {"tensor.hpp", "numeric_conversion.h"} <= read


def _files_of(entry: Path) -> dict[str, str]:
    return json.loads((entry / "manifest.json").read_text())["files"]
