"""A warp reduction in which each of the 32 lanes works on a column of its own.

Mechanism: the shuffles add the lanes together as if they were parts of one sum; any comparison sees it.
Expected: incorrect/wrong_values
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void lanes_own_columns_kernel(const float* A, const float* B, float* C, int M) {
  const int lane = threadIdx.x;
  const int j = blockIdx.x * 32 + lane;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  if (i < M && j < M) {
    for (int k = j; k <= i; ++k) {
      sum += A[static_cast<int64_t>(i) * M + k] * B[static_cast<int64_t>(k) * M + j];
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (i < M && j < M) C[static_cast<int64_t>(i) * M + j] = i >= j ? sum : 0.0f;
}

torch::Tensor lanes_own_columns(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const c10::cuda::CUDAGuard guard(A.device());
  const int64_t M = A.size(0);
  auto C = torch::empty({M, M}, A.options());
  const unsigned tiles = static_cast<unsigned>((M + 31) / 32);
  lanes_own_columns_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), static_cast<int>(M));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""

extension = load_inline(
    name="fixture_lanes_own_columns",
    cpp_sources="torch::Tensor lanes_own_columns(const torch::Tensor& A, const torch::Tensor& B);",
    cuda_sources=CUDA_SOURCE,
    functions=["lanes_own_columns"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.lanes_own_columns(A, B)
