"""Its upper blocks return early and the output comes from `empty`: the upper triangle is never written.

Mechanism: the tensor of ones is freed first, so that the allocator hands its memory back, used. Fresh
  memory would be zero by luck; what was handed back before is overwritten with 0xFF here.
Expected: incorrect/wrong_values or incorrect/not_finite
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

__global__ void upper_unwritten_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || i < j) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[static_cast<int64_t>(i) * M + k] * B[static_cast<int64_t>(k) * M + j];
  C[static_cast<int64_t>(i) * M + j] = sum;
}

torch::Tensor upper_unwritten(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const c10::cuda::CUDAGuard guard(A.device());
  const int64_t M = A.size(0);
  auto C = torch::empty({M, M}, A.options());
  const unsigned tiles = static_cast<unsigned>((M + 31) / 32);
  upper_unwritten_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), static_cast<int>(M));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""

extension = load_inline(
    name="fixture_upper_unwritten",
    cpp_sources="torch::Tensor upper_unwritten(const torch::Tensor& A, const torch::Tensor& B);",
    cuda_sources=CUDA_SOURCE,
    functions=["upper_unwritten"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        used = torch.ones_like(A)
        del used
        return extension.upper_unwritten(A, B)
