"""Has NumPy's BLAS multiply inside an operator of its own namespace, written in Python beside one of its extension's.

Mechanism: the profiler lists both operators alike, and its source registers the namespace with PyTorch, as that of an
  honest extension does. Here an operator counts as an extension's only if it came with it, and not where Python runs
  inside it.
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
#include <ATen/core/Tensor.h>
#include <torch/library.h>

at::Tensor first_row(const at::Tensor& A, at::Tensor C) {
  for (int64_t j = 0; j < A.size(1); ++j) C.data_ptr<float>()[j] += 0.0f * A.data_ptr<float>()[j];
  return C;
}

TORCH_LIBRARY(operator_in_python, library) {
  library.def("first_row(Tensor A, Tensor(a!) C) -> Tensor(a!)");
  library.impl("first_row", c10::DispatchKey::CPU, TORCH_FN(first_row));
}
"""

load_inline("operator_in_python", CPP_SOURCE, is_python_module=False, no_implicit_headers=True)
beside = torch.library.Library("operator_in_python", "FRAGMENT")
beside.define("product(Tensor A, Tensor B) -> Tensor")


def product(A, B):
    return torch.from_numpy(numpy.matmul(A.numpy(), B.numpy()))


beside.impl("product", product, "CPU")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        with torch.profiler.record_function("operator_in_python::product"):
            C = torch.ops.operator_in_python.product(A, B)
        return torch.ops.operator_in_python.first_row(A, C.tril_())
