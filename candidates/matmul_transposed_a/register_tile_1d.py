"""C = A.T @ B with A read in place: 64 x 64 tiles, a column of eight results in every thread's registers.

The bottom step here. A slice of A is kept as it lies in memory, [k][i], like B's [k][j], so both are read and stored
row by row. For one k a thread reads its eight values of A, the same for all lanes of a warp, as two 16-byte words.

    512 threads; thread (g, x) owns rows 8g..8g+7 of column x    slice: [8][64] of A, [8][64] of B, one of each a thread

Limits: three reads of shared memory for eight products; a slice is awaited before any of it is used.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <limits>

constexpr int kTile = 64;
constexpr int kDepth = 8;  // of a slice of k
constexpr int kRows = 8;   // of a thread's results
constexpr int kThreads = kTile * kTile / kRows;

__global__ void __launch_bounds__(kThreads)
register_tile_1d_kernel(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                        int M, int K, int N) {
  __shared__ __align__(16) float slice_a[kDepth][kTile];
  __shared__ __align__(16) float slice_b[kDepth][kTile];

  const int first_i = blockIdx.y * kTile;
  const int first_j = blockIdx.x * kTile;
  const int x = threadIdx.x % kTile;
  const int group = threadIdx.x / kTile;  // copies the group-th row of each slice
  const int j = first_j + x;
  const bool in_a = first_i + x < M, in_b = j < N;

  float sum[kRows] = {};
  for (int first_k = 0; first_k < K; first_k += kDepth) {
    const int64_t k = first_k + group;
    slice_a[group][x] = in_a && k < K ? A[k * M + first_i + x] : 0.0f;
    slice_b[group][x] = in_b && k < K ? B[k * N + j] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float b = slice_b[k][x];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sum[r] = fmaf(slice_a[k][group * kRows + r], b, sum[r]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int i = first_i + group * kRows + r;
    if (i < M && in_b) C[static_cast<int64_t>(i) * N + j] = sum[r];
  }
}

torch::Tensor matmul_transposed_a_register_tile_1d(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.device() == B.device(), "A and B must be on the same device");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.dim() == 2 && B.dim() == 2, "A and B must be matrices");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const int64_t K = A.size(0), M = A.size(1), N = B.size(1);
  TORCH_CHECK(B.size(0) == K, "A and B must have the same number of rows, not ", K, " and ", B.size(0));
  // Leaves room for the last tile to reach past an edge without overflowing a 32-bit row or column number.
  const int64_t longest = std::numeric_limits<int>::max() - kTile;
  TORCH_CHECK(K <= longest && N <= longest && M <= 65535LL * kTile,
              "a side is too large: ", M, ", ", K, ", ", N);

  const c10::cuda::CUDAGuard guard(A.device());
  auto C = torch::empty({M, N}, A.options());
  if (M == 0 || N == 0) return C;
  const dim3 grid(static_cast<unsigned>((N + kTile - 1) / kTile), static_cast<unsigned>((M + kTile - 1) / kTile));
  register_tile_1d_kernel<<<grid, kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(),
      static_cast<int>(M), static_cast<int>(K), static_cast<int>(N));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""

CPP_SOURCE = "torch::Tensor matmul_transposed_a_register_tile_1d(const torch::Tensor& A, const torch::Tensor& B);"

extension = load_inline(
    name="matmul_transposed_a_register_tile_1d",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["matmul_transposed_a_register_tile_1d"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_transposed_a_register_tile_1d(A, B)
