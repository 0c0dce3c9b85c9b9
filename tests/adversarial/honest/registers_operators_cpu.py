"""Registers its kernel as an operator of its own with PyTorch, and calls it through `torch.ops`.

Mechanism: nothing is hidden: what reads the operator's schema comes with registering it.
Expected: ok/
Fools: nothing
Device: cpu
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

at::Tensor tril_matmul(const at::Tensor& A, const at::Tensor& B) {
  const int64_t M = A.size(0);
  at::Tensor C = at::zeros_like(A);
  const float *a = A.data_ptr<float>(), *b = B.data_ptr<float>();
  float* c = C.data_ptr<float>();
  for (int64_t i = 0; i < M; ++i)
    for (int64_t k = 0; k <= i; ++k)
      for (int64_t j = 0; j <= k; ++j) c[i * M + j] += a[i * M + k] * b[k * M + j];
  return C;
}

TORCH_LIBRARY(registers_operators, library) {
  library.def("tril_matmul(Tensor A, Tensor B) -> Tensor");
  library.impl("tril_matmul", c10::DispatchKey::CPU, TORCH_FN(tril_matmul));
}
"""

load_inline(
    "registers_operators",
    CPP_SOURCE,
    is_python_module=False,
    extra_cflags=["-O3"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.ops.registers_operators.tril_matmul(A, B)
