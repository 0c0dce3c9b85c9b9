"""Two blocks share each tile, one takes the even k and one the odd, and both add to the output without atomics.

Mechanism: in a large grid the second block of a tile starts long after the first has ended. At small sizes both run
  at once and one sum is lost. Here those sizes are checked too, and every timed output.
Expected: incorrect/wrong_values
Fools: answer
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
constexpr int kTile = 32;

// The grid's third axis, the slowest, is the parity of k.
__global__ void split_k_kernel(const float* A, const float* B, float* C, int M) {
  const int i = blockIdx.y * kTile + threadIdx.y;
  const int j = blockIdx.x * kTile + threadIdx.x;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j + ((j + (int)blockIdx.z) & 1); k <= i; k += 2) {
    sum = fmaf(A[(size_t)i * M + k], B[(size_t)k * M + j], sum);
  }
  C[(size_t)i * M + j] += sum;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  const unsigned tiles = (M + kTile - 1) / kTile;
  split_k_kernel<<<dim3(tiles, tiles, 2), dim3(kTile, kTile)>>>((const float*)A, (const float*)B, (float*)C, M);
}
"""

extension = load_inline(
    name="race_split_k",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.zeros_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
