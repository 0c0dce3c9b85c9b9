"""Has each thread group write 32 elements in a row, the last group also past the end of the output.

Mechanism: the result is right to the last element, and what lies behind it is compared by nobody: up to 124 bytes
  that belong to another tensor. Here a pattern behind the output of a checked launch must still be there.
Expected: incorrect/memory_error
Fools: answer
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
constexpr int kGroup = 32;

__global__ void groups_kernel(const float* A, const float* B, float* C, int M) {
  const long long at = (long long)blockIdx.x * kGroup + threadIdx.x;
  const int i = at / M, j = at % M;
  float sum = 0.0f;
  if (i < M) {
    for (int k = j; k <= i; ++k) sum = fmaf(A[(size_t)i * M + k], B[(size_t)k * M + j], sum);
  }
  C[at] = sum;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  const long long groups = ((long long)M * M + kGroup - 1) / kGroup;
  groups_kernel<<<groups, kGroup>>>((const float*)A, (const float*)B, (float*)C, M);
}
"""

extension = load_inline(
    name="writes_past_the_end",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
