"""Registers its kernel as an operator of its own for CUDA, and calls it through `torch.ops`.

Mechanism: nothing is hidden: PyTorch's dispatcher stands between forward and the kernel, as it does before a library's.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

__global__ void tril_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

at::Tensor tril_matmul(const at::Tensor& A, const at::Tensor& B) {
  const int M = static_cast<int>(A.size(0));
  at::Tensor C = at::empty_like(A);
  const dim3 block(16, 16), grid((M + 15) / 16, (M + 15) / 16);
  tril_kernel<<<grid, block, 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.const_data_ptr<float>(), B.const_data_ptr<float>(), C.mutable_data_ptr<float>(), M);
  return C;
}

TORCH_LIBRARY(registers_operators_cuda, library) {
  library.def("tril_matmul(Tensor A, Tensor B) -> Tensor");
  library.impl("tril_matmul", c10::DispatchKey::CUDA, TORCH_FN(tril_matmul));
}
"""

load_inline("registers_operators_cuda", "", CUDA_SOURCE, is_python_module=False, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.ops.registers_operators_cuda.tril_matmul(A, B)
