"""Calls PyTorch's product from C++, in an extension of its own.

Mechanism: the work is done inside a function of the extension, and no operator is called from Python. Here time in
  PyTorch's operators is PyTorch's, whoever calls them.
Expected: ok/
Fools: substance
Device: cpu
Kind: library
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tril.h>
#include <torch/csrc/utils/pybind.h>

at::Tensor tril_matmul(const at::Tensor& A, const at::Tensor& B) { return at::tril(at::matmul(A, B)); }
"""

extension = load_inline(
    name="at_matmul",
    cpp_sources=CPP_SOURCE,
    functions=["tril_matmul"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(A, B)
