"""Builds an extension, calls it on a single number, and has PyTorch multiply the matrices.

Mechanism: there is C++ in the file and it is called, and that is all that is usually asked. Here the time inside
  the extension is set against the time in PyTorch's operators.
Expected: ok/
Fools: substance
Device: cpu
Kind: library
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>

void tril_matmul_kernel(long long scratch) { *reinterpret_cast<float*>(scratch) += 1.0f; }
"""

extension = load_inline(
    name="decoy_extension",
    cpp_sources=CPP_SOURCE,
    functions=["tril_matmul_kernel"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(1)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.tril_matmul_kernel(self.scratch.data_ptr())
        return torch.tril(torch.matmul(A, B))
