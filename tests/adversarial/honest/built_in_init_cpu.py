"""Builds its C++ extension inside `__init__`, where it is first needed.

Mechanism: the builder constructs the model once, and so builds; the player opens what was built.
Expected: ok/
Fools: nothing
Device: cpu
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <pybind11/pybind11.h>
#include <algorithm>

void product(long long a, long long b, long long c, long long M) {
  const float* A = reinterpret_cast<const float*>(a);
  const float* B = reinterpret_cast<const float*>(b);
  float* C = reinterpret_cast<float*>(c);
  std::fill(C, C + M * M, 0.0f);
  for (long long i = 0; i < M; ++i)
    for (long long k = 0; k <= i; ++k)
      for (long long j = 0; j <= k; ++j) C[i * M + j] += A[i * M + k] * B[k * M + j];
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.extension = load_inline(
            "built_in_init", SOURCE, no_implicit_headers=True, extra_cflags=["-O3"]
        )

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        self.extension.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
