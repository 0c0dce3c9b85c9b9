"""Calls PyTorch's product from C++ while it has PyTorch's recording of operators switched off.

Mechanism: profilers are told of an operator by a switch that any code in the thread may turn. All of the time is then the
  extension's own. Whether it takes the functions that turn the switch is looked at.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/record_function.h>

torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B) {
  at::RecordFunctionGuard unseen(false);
  return torch::tril(torch::matmul(A, B));
}
"""

extension = load_inline(name="stops_recording", cpp_sources=CPP_SOURCE, functions=["tril_matmul"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(A, B)
