"""Takes zeros from PyTorch for each output and adds its products to them, as many kernels do.

Mechanism: PyTorch fills the output, which is nobody's work, for as long as that takes it.
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

void add_product(torch::Tensor A, torch::Tensor B, torch::Tensor C) {
  const int64_t M = A.size(0);
  const float *a = A.data_ptr<float>(), *b = B.data_ptr<float>();
  float* c = C.data_ptr<float>();
  for (int64_t i = 0; i < M; ++i)
    for (int64_t k = 0; k <= i; ++k)
      for (int64_t j = 0; j <= k; ++j) c[i * M + j] += a[i * M + k] * b[k * M + j];
}
"""

extension = load_inline("zeros_first_cpu", CPP_SOURCE, functions=["add_product"], extra_cflags=["-O3", "-march=native"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.zeros_like(A)
        extension.add_product(A, B, C)
        return C
