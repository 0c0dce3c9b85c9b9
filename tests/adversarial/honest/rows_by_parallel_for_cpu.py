"""Multiplies row by row with PyTorch's own parallel loop.

Mechanism: the loop hands out pieces, and what runs in them is its own code.
Expected: ok/
Fools: nothing
Device: cpu
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>

// One row of the product of two lower triangular matrices: row i of A times the rows of B up to i.
static void row(const float* A, const float* B, float* C, int64_t M, int64_t i) {
  float* out = C + i * M;
  for (int64_t k = 0; k <= i; ++k) {
    const float a = A[i * M + k];
    const float* b = B + k * M;
    for (int64_t j = 0; j <= k; ++j) out[j] += a * b[j];
  }
}

torch::Tensor tril_matmul(torch::Tensor A, torch::Tensor B) {
  auto C = torch::zeros_like(A);
  const int64_t M = A.size(0);
  const float *a = A.data_ptr<float>(), *b = B.data_ptr<float>();
  float* c = C.data_ptr<float>();
  at::parallel_for(0, M, 8, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) row(a, b, c, M, i);
  });
  return C;
}
"""

extension = load_inline("rows_by_parallel_for_cpu", CPP_SOURCE, functions=["tril_matmul"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(A, B)
