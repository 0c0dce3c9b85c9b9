"""Multiplies row by row with OpenMP.

Mechanism: half of what the cores run may be OpenMP's own waiting for the last row, which is nobody's work.
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
#pragma omp parallel for schedule(dynamic, 4)
  for (int64_t i = 0; i < M; ++i) row(a, b, c, M, M - 1 - i);
  return C;
}
"""

extension = load_inline("rows_by_openmp_cpu", CPP_SOURCE, functions=["tril_matmul"], extra_cflags=["-O3", "-fopenmp"], extra_ldflags=["-fopenmp"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(A, B)
