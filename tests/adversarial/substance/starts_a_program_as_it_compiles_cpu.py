"""Has its compiler start a program of its choice, which could put another library in the place of what is compiled.

Mechanism: -wrapper names a program for each step of the compiler. Flags that may start one are none that the harness
  knows, so nobody knows whose the extension is.
Expected: ok/
Fools: substance
Device: cpu
Kind: unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

OWN = r"""
#include <torch/extension.h>
torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b) {
  const int64_t n = a.size(0);
  auto c = torch::zeros_like(a);
  const float *x = a.data_ptr<float>(), *y = b.data_ptr<float>();
  float* z = c.data_ptr<float>();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k <= i; ++k)
      for (int64_t j = 0; j <= k; ++j) z[i * n + j] += x[i * n + k] * y[k * n + j];
  return c;
}
"""
own = load_inline("wrapped", OWN, functions="product", extra_cflags=["-O3", "-wrapper", "env"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return own.product(A, B)
