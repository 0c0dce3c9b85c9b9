"""64 x 64 tiles of C = tril(A @ B), a column of eight results in every thread's registers.

Over tiled_shared: a value of B read from shared memory serves eight products, and a value of A, the same for all lanes
of a warp, is read four k at a time. k goes in slices of 8, from the tile's first column to its last row.

    512 threads; thread (g, x) owns rows 8g..8g+7 of column x    slice: [64][8] of A, [8][64] of B, one of each a thread

Limits: nine reads of shared memory for eight products; a slice is awaited before any of it is used.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kTile = 64;
constexpr int kDepth = 8;  // of a slice of k
constexpr int kRows = 8;   // of a thread's results
constexpr int kThreads = kTile * kTile / kRows;

__global__ void __launch_bounds__(kThreads)
register_tile_1d_kernel(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M) {
  __shared__ __align__(16) float slice_a[kTile][kDepth];
  __shared__ __align__(16) float slice_b[kDepth][kTile];

  // The heaviest tiles, those of the bottom rows, start first.
  const int first_i = (gridDim.y - 1 - blockIdx.y) * kTile;
  const int first_j = blockIdx.x * kTile;
  const int x = threadIdx.x % kTile;
  const int first_row = threadIdx.x / kTile * kRows;

  // The place of the one element of each operand that this thread copies.
  const int row_of_a = threadIdx.x / kDepth, k_of_a = threadIdx.x % kDepth;
  const int k_of_b = threadIdx.x / kTile;
  const int i = first_i + row_of_a, j = first_j + x;

  float sum[kRows] = {};
  const int last_k = min(first_i + kTile, M);
  for (int first_k = first_j; first_k < last_k; first_k += kDepth) {
    const int ka = first_k + k_of_a, kb = first_k + k_of_b;
    slice_a[row_of_a][k_of_a] = (i < M && ka < M) ? A[static_cast<int64_t>(i) * M + ka] : 0.0f;
    slice_b[k_of_b][x] = (kb < M && j < M) ? B[static_cast<int64_t>(kb) * M + j] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const float b = slice_b[k][x];
#pragma unroll
      for (int r = 0; r < kRows; ++r) sum[r] = fmaf(slice_a[first_row + r][k], b, sum[r]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int row = first_i + first_row + r;
    if (row < M && j < M) C[static_cast<int64_t>(row) * M + j] = row >= j ? sum[r] : 0.0f;
  }
}

torch::Tensor tril_matmul_register_tile_1d(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.device() == B.device(), "A and B must be on the same device");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.dim() == 2 && B.dim() == 2, "A and B must be matrices");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const int64_t M = A.size(0);
  TORCH_CHECK(A.size(1) == M && B.size(0) == M && B.size(1) == M,
              "A and B must be square and of the same size");
  TORCH_CHECK(M <= 65535LL * kTile, "M is too large for this grid: ", M);

  const c10::cuda::CUDAGuard guard(A.device());
  auto C = torch::empty({M, M}, A.options());
  if (M == 0) return C;
  const unsigned tiles = static_cast<unsigned>((M + kTile - 1) / kTile);
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream();
  register_tile_1d_kernel<<<dim3(tiles, tiles), kThreads, 0, stream>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), static_cast<int>(M));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""

CPP_SOURCE = "torch::Tensor tril_matmul_register_tile_1d(const torch::Tensor& A, const torch::Tensor& B);"

extension = load_inline(
    name="tril_matmul_register_tile_1d",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["tril_matmul_register_tile_1d"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul_register_tile_1d(A, B)
