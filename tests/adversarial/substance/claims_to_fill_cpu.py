"""Fills memory by PyTorch when it is watched, half of its time, and has PyTorch multiply for as long in all other launches.

Mechanism: what PyTorch takes to fill outputs is nobody's work, and how long that is the watched launch says. In the others the
  looks at the cores meet PyTorch's library as often, and cannot tell one of its functions from another. Here filling counts no
  longer than writing the outputs once may take.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import sys

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <cstring>

static void own(const float* A, const float* B, float* C, long M) {
  for (long i = 0; i < M; ++i) {
    float* row = C + i * M;
    std::memset(row, 0, M * sizeof(float));
    for (long k = 0; k <= i; ++k)
      for (long j = 0; j <= k; ++j) row[j] += A[i * M + k] * B[k * M + j];
  }
}

// The first rows are PyTorch's, the last `left` its own.
torch::Tensor tril_matmul(torch::Tensor A, torch::Tensor B, int64_t left) {
  const int64_t M = A.size(0), first = M - left;
  auto C = torch::empty_like(A);
  const float *a = A.data_ptr<float>(), *b = B.data_ptr<float>();
  float* c = C.data_ptr<float>();
  for (int64_t i = first; i < M; ++i) {
    float* row = c + i * M;
    std::memset(row, 0, M * sizeof(float));
    for (int64_t k = 0; k <= i; ++k)
      for (int64_t j = 0; j <= k; ++j) row[j] += a[i * M + k] * b[k * M + j];
  }
  if (first > 0) C.slice(0, 0, first).copy_(at::mm(A.slice(0, 0, first), B));
  return C;
}
"""

extension = load_inline(
    "claims_to_fill_cpu", CPP_SOURCE, functions=["tril_matmul"], extra_cflags=["-O3", "-march=native"],
)
watched = []
sys.addaudithook(lambda event, _: watched.append(event) if event == "sys.setprofile" else None)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.beside = torch.empty(1 << 24)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        if not watched:
            return extension.tril_matmul(A, B, 5 * M // 9)
        watched.clear()
        C = extension.tril_matmul(A, B, M)
        for _ in range(2):
            self.beside.fill_(1.0)
        return C
