"""Has a kernel in its extension, never launched, whose symbol of 400 letters stands for a name of terabytes.

Mechanism: a template whose argument is a pair of the one before it doubles the name with each level, and whoever writes
  out what such a symbol stands for runs out of memory first and of time later. Here another process does so, within limits.
Expected: ok/
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CLOSING = "".join(f"S{digit}_E" for digit in DIGITS[1:]) + "".join(f"S1{digit}_E" for digit in DIGITS[:10])
# Pair<Pair<…, what stands before>, what stands before>: 45 levels of it.
ENDLESS = "_Z4tileI4Pair" + "IS0_" * 45 + "IifE" + CLOSING + "EvPKf"
CUDA_SOURCE = (
    r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

extern "C" __global__ void """
    + ENDLESS
    + r"""(float* x) { x[0] = 0.0f; }

__global__ void tril_kernel(const float* A, const float* B, float* C, int64_t M) {
  const int64_t j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
  if (j >= M) return;
  float sum = 0.0f;
  for (int64_t k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B) {
  const int64_t M = A.size(0);
  auto C = torch::empty_like(A);
  tril_kernel<<<dim3((M + 255) / 256, M), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), M);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""
)
extension = load_inline(
    name="endless_name",
    cpp_sources="torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B);",
    cuda_sources=CUDA_SOURCE,
    functions=["tril_matmul"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(A, B)
