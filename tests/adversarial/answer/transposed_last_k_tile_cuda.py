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
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

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
    const int64_t k = t * kTile + ty;
    tile_a[ty][tx] = first_i + tx < M ? A[k * M + first_i + tx] : 0.0f;
    tile_b[ty][tx] = j < N ? B[k * N + j] : 0.0f;
    __syncthreads();
    for (int at = 0; at < kTile; ++at) sum += tile_a[at][ty] * tile_b[at][tx];
    __syncthreads();
  }
  if (i < M && j < N) C[static_cast<int64_t>(i) * N + j] = sum;
}

torch::Tensor last_k_tile(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const c10::cuda::CUDAGuard guard(A.device());
  const int64_t K = A.size(0), M = A.size(1), N = B.size(1);
  auto C = torch::empty({M, N}, A.options());
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile),
                  static_cast<unsigned>((M + kTile - 1) / kTile));
  last_k_tile_kernel<<<grid, dim3(kTile, kTile), 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(),
      static_cast<int>(M), static_cast<int>(K), static_cast<int>(N));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""

extension = load_inline(
    name="fixture_last_k_tile",
    cpp_sources="torch::Tensor last_k_tile(const torch::Tensor& A, const torch::Tensor& B);",
    cuda_sources=CUDA_SOURCE,
    functions=["last_k_tile"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.last_k_tile(A, B)
