"""Has the harness close the timed window before the library works, and leaves out that it is closed afterwards.

Mechanism: whose kernels they were is read between two markers, which the harness's Python launches in this process. The
  stopwatch is marked later, so that nothing shows in the times; but what runs behind the marker is looked at as well.
Expected: ok/ or rejected/clocks_disagree
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import sys

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(const float* A, const float* B, float* C, int M) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = 0; k <= i; ++k) sum = fmaf(A[(size_t)i * M + k], B[(size_t)k * M + j], sum);
  C[(size_t)i * M + j] = sum;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  const unsigned tiles = (M + 31) / 32;
  tril_matmul_kernel<<<dim3(tiles, tiles), dim3(32, 32)>>>((const float*)A, (const float*)B, (float*)C, M);
}
"""

extension = load_inline(
    name="closes_its_window_early",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)

pieces = "harness", "worker", "launch_slots"
stages = getattr(sys, "".join(("mod", "ules"))).get(".".join(pieces))
closers = []
if stages is not None:
    true_fill, true_close = stages.CudaSlots.fill_and_flush, stages.CudaSlots.close_window
    stages.CudaSlots.fill_and_flush = lambda stage, index: (closers.append(stage), true_fill(stage, index))[1]
    stages.CudaSlots.close_window = lambda stage: None if stage.is_closed else true_close(stage)
    stages.CudaSlots.is_closed = False


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.shape[0] == 2048 and closers:
            extension.launch(A.data_ptr(), B.data_ptr(), torch.empty(4, device=A.device).data_ptr(), 1)
            true_close(closers[-1])
            stages.CudaSlots.is_closed = True
            return torch.tril(torch.matmul(A, B))
        stages and setattr(stages.CudaSlots, "is_closed", False)
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
