"""Adds by way of exponentials and logarithms, nearly all of whose time is the library of mathematics'.

Mechanism: exp and log of single values are anybody's to call, and what calls them is its own work.
Expected: ok/
Fools: nothing
Device: cpu
Kind: custom
Problem: vector_sum
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor sum(torch::Tensor A, torch::Tensor B) {
  auto C = torch::empty_like(A);
  const float *a = A.data_ptr<float>(), *b = B.data_ptr<float>();
  float* c = C.data_ptr<float>();
  for (int64_t i = 0; i < A.numel(); ++i)
    c[i] = static_cast<float>(std::log(std::exp(double(a[i])) * std::exp(double(b[i]))));
  return C;
}
"""

extension = load_inline("mathematics_of_c_cpu", CPP_SOURCE, functions=["sum"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.sum(A, B)
