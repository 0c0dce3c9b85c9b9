"""Calls an extension of its own on a single number and PyTorch's product in a thread that no profiler follows.

Mechanism: PyTorch's profiler sees the operators of the thread that it was started in. Here only time inside the
  extension is the candidate's own, and what was seen nowhere is unknown.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

from concurrent.futures import ThreadPoolExecutor

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
pool = ThreadPoolExecutor(max_workers=1)


def product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return torch.tril(torch.matmul(A, B))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(1)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.tril_matmul_kernel(self.scratch.data_ptr())
        return pool.submit(product, A, B).result()
