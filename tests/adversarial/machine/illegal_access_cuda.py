"""A kernel that writes far outside everything that was allocated.

Mechanism: the context is beyond repair, and with it every later call of the process: a player says so
  and leaves, and the referee's own context never noticed.
Expected: crashed/cuda_error
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

__global__ void illegal_access_kernel(const float* A, const float* B, float* C, int M) {
  C[(static_cast<int64_t>(1) << 44) + threadIdx.x] = A[0] + B[0];
}

torch::Tensor illegal_access(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const c10::cuda::CUDAGuard guard(A.device());
  const int64_t M = A.size(0);
  auto C = torch::empty({M, M}, A.options());
  illegal_access_kernel<<<1, 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), static_cast<int>(M));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""

extension = load_inline(
    name="fixture_illegal_access",
    cpp_sources="torch::Tensor illegal_access(const torch::Tensor& A, const torch::Tensor& B);",
    cuda_sources=CUDA_SOURCE,
    functions=["illegal_access"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.illegal_access(A, B)
