"""Calls an extension of its own on a single number, and leaves PyTorch's product out of what the profiler reports.

Mechanism: the profiler's Python half lives in the process that it watches, and a candidate may replace it. Here its
  functions are taken before the candidate comes, and what was seen nowhere is unknown.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
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

listed = torch.profiler.profile.events
torch.profiler.profile.events = lambda self: [each for each in listed(self) if not each.name.startswith("aten::")]


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(1)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.tril_matmul_kernel(self.scratch.data_ptr())
        return torch.tril(torch.matmul(A, B))
