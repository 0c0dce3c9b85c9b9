"""Launches a kernel of its own on a single number and has cuBLAS multiply the matrices.

Mechanism: there is a __global__ function in the file and it is launched, and that is all that is usually asked.
  Here each kernel of a traced launch counts by its time.
Expected: ok/
Fools: substance
Device: cuda
Kind: library
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(float* scratch) { *scratch += 1.0f; }

extern "C" void launch(long long scratch) { tril_matmul_kernel<<<1, 1>>>((float*)scratch); }
"""

extension = load_inline(
    name="decoy_kernel",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(1, device="cuda") if torch.cuda.is_available() else None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.launch(self.scratch.data_ptr())
        return torch.tril(torch.matmul(A, B))
