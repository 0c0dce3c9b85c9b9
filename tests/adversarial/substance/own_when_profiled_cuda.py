"""Uses a slow kernel of its own while a profiler is on, and cuBLAS at all other times.

Mechanism: whoever asks a profiler what ran is shown the kernel, and whoever times it times the library. Here the
  traced launch must take about as long as the timed ones did.
Expected: ok/ or rejected/clocks_disagree
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

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
    name="own_when_profiled",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not torch._C._autograd._profiler_enabled():
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
