"""Calls PyTorch's product from C++ behind the place where its dispatcher tells profilers of operators.

Mechanism: an operator is recorded where it is called; where it is handed on to the next kernel, as a wrapper around it
  would, nothing is. All of the time is then the extension's own. Which functions of the dispatcher it takes is looked at.
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
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/tril_ops.h>

torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B) {
  const c10::DispatchKeySet keys(c10::DispatchKey::CPU);
  return at::_ops::tril::redispatch(keys, at::_ops::mm::redispatch(keys, A, B), 0);
}
"""

extension = load_inline(name="redispatches", cpp_sources=CPP_SOURCE, functions=["tril_matmul"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(A, B)
