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
#include <torch/extension.h>

torch::Tensor cpp_syntax_error(const torch::Tensor& A, const torch::Tensor& B) {
  const auto product = torch::matmul(A, B)
  return torch::tril(product);
}
"""

extension = load_inline(
    name="fixture_cpp_syntax_error",
    cpp_sources=CPP_SOURCE,
    functions=["cpp_syntax_error"],
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.cpp_syntax_error(A, B)
