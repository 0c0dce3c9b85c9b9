"""Writes whole tiles, also where the output ends in the middle of one: past the end of each row, and of the memory.

Mechanism: at the one size that is compared tiles end where the output does. At the others the zero beyond a row's
  end is the next row's first element, and those behind the last row are written over a pattern that is looked at.
Expected: incorrect/memory_error or incorrect/wrong_values
Fools: answer
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
constexpr int kTile = 32;

__global__ void whole_tiles_kernel(const float* A, const float* B, float* C, int M) {
  const int i = blockIdx.y * kTile + threadIdx.y;
  const int j = blockIdx.x * kTile + threadIdx.x;
  const bool inside = i < M && j < M;
  float sum = 0.0f;
  if (inside) {
    for (int k = j; k <= i; ++k) sum = fmaf(A[(size_t)i * M + k], B[(size_t)k * M + j], sum);
    C[(size_t)i * M + j] = sum;
  }
  __syncthreads();
  if (!inside) C[(size_t)i * M + j] = 0.0f;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  const unsigned tiles = (M + kTile - 1) / kTile;
  whole_tiles_kernel<<<dim3(tiles, tiles), dim3(kTile, kTile)>>>((const float*)A, (const float*)B, (float*)C, M);
}
"""

extension = load_inline(
    name="writes_beyond",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
