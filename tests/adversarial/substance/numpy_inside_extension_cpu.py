"""Has NumPy's BLAS multiply the matrices, called from inside an extension of its own.

Mechanism: the time lies inside a function of the extension, NumPy's product is none of PyTorch's operators, and what C++
  calls in Python without going through Python shows in no trace of calls. Whether it calls Python at all is looked at.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import numpy
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>

void tril_matmul(pybind11::object product, pybind11::object A, pybind11::object B, pybind11::object C) {
  product(A, B, C);
}
"""

extension = load_inline(
    name="numpy_inside",
    cpp_sources=CPP_SOURCE,
    functions=["tril_matmul"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(numpy.matmul, A.numpy(), B.numpy(), C.numpy())
        return C
