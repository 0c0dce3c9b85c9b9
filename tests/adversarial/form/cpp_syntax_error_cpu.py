"""Forgets the semicolon of a C++ statement.

Mechanism: g++ reports the line after it, line 6 of the source, among fifty lines of ninja. The reason
  names the line of this file.
Expected: build_failed/compile_error
Fools: nothing
Device: cpu
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>

long long sum_to(int count) {
  const int last = count - 1
  return static_cast<long long>(last) * count / 2;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("sum_to", &sum_to); }
"""

extension = load_inline("cpp_syntax_error", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B)) * extension.sum_to(2)
