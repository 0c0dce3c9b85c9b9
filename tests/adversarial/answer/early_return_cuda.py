"""A tiled kernel whose threads outside the result return before the barriers.

Mechanism: the parts of the tiles that were theirs to load are never loaded; what shared memory held
  before is summed instead. Sizes that no tile divides, and the diagonal tiles, come out wrong.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
constexpr int kTile = 32;

__global__ void early_return_kernel(const float* A, const float* B, float* C, int M) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int i = blockIdx.y * kTile + ty;
  const int j = blockIdx.x * kTile + tx;
  if (i >= M || j >= M) return;
  if (i < j) {
    C[i * M + j] = 0.0f;
    return;
  }
  float sum = 0.0f;
  for (int t = blockIdx.x; t <= static_cast<int>(blockIdx.y); ++t) {
    const int k_of_a = t * kTile + tx;
    const int k_of_b = t * kTile + ty;
    tile_a[ty][tx] = k_of_a < M ? A[i * M + k_of_a] : 0.0f;
    tile_b[ty][tx] = k_of_b < M ? B[k_of_b * M + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
    __syncthreads();
  }
  C[i * M + j] = sum;
}

extern "C" void early_return(long long A, long long B, long long C, int M, long long stream) {
  const unsigned tiles = (M + 31) / 32;
  early_return_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void early_return(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("early_return", &early_return); }
"""

extension = load_inline("early_return", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.early_return(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
