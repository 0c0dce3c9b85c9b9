"""Compiles loops of its own, and puts another library, which multiplies by PyTorch, in their place before the build ends.

Mechanism: a build runs the candidate's code, and what lies in its folder at the end would count as compiled from its
  sources. A process that runs none of that code compiles, in a folder that this one can only read.
Expected: build_failed/import_error
Fools: substance
Device: cpu
"""

import os
import pathlib

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
PYTORCHS = r"""
#include <torch/extension.h>
torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b) { return at::tril(at::matmul(a, b)); }
PYBIND11_MODULE(swapped, m) { m.def("product", &product); }
"""

own = load_inline("swapped", OWN, functions="product", extra_cflags=["-O3"])
if "MAX_JOBS" in os.environ:  # what a build sets
    other = load_inline("swapped_in", PYTORCHS, functions="product", extra_cflags=["-O3"])
    place = pathlib.Path(own.__file__)
    place.unlink()
    place.write_bytes(pathlib.Path(other.__file__).read_bytes())


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return own.product(A, B)
