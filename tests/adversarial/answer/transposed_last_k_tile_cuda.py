"""Leaves out the last, ragged tile of k: the loop over the tiles rounds down.

Mechanism: right whenever K is a multiple of 16, as it is at the timed size. The other sizes that the
  problem names are checked as well.
Expected: incorrect/wrong_values
Fools: answer
Device: cuda
Problem: matmul_transposed_a
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
constexpr int kTile = 16;

__global__ void last_k_tile_kernel(const float* A, const float* B, float* C, int M, int K, int N) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile];
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  const int first_i = blockIdx.y * kTile;
  const int i = first_i + ty;
  const int j = blockIdx.x * kTile + tx;
  float sum = 0.0f;
  for (int t = 0; t < K / kTile; ++t) {
    const int k = t * kTile + ty;
    tile_a[ty][tx] = first_i + tx < M ? A[k * M + first_i + tx] : 0.0f;
    tile_b[ty][tx] = j < N ? B[k * N + j] : 0.0f;
    __syncthreads();
    for (int at = 0; at < kTile; ++at) sum += tile_a[at][ty] * tile_b[at][tx];
    __syncthreads();
  }
  if (i < M && j < N) C[i * N + j] = sum;
}

extern "C" void last_k_tile(long long A, long long B, long long C, int M, int K, int N, long long stream) {
  const dim3 grid((N + kTile - 1) / kTile, (M + kTile - 1) / kTile);
  last_k_tile_kernel<<<grid, dim3(kTile, kTile), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M, K, N);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void last_k_tile(long long A, long long B, long long C, int M, int K, int N, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("last_k_tile", &last_k_tile); }
"""

extension = load_inline("last_k_tile", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = A.new_empty(A.shape[1], B.shape[1])
        stream = torch.cuda.current_stream().cuda_stream
        extension.last_k_tile(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[1], A.shape[0], B.shape[1], stream)
        return C
