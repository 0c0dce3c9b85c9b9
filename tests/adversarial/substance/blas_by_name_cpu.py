"""Finds the BLAS inside PyTorch's own library by name, from C++, and calls that: no operator of PyTorch runs.

Mechanism: all of the time is spent inside a function of the extension. The profiler sees no library, for it knows
  of operators only; the extension itself names no BLAS among what it links.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <stdexcept>

using Product = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                         const int*, const float*, const int*, const float*, float*, const int*);

void tril_matmul(long long A, long long B, long long C, int M) {
  void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  static const auto product = reinterpret_cast<Product>(dlsym(library, "sgemm_"));
  if (!product) throw std::runtime_error("there is no sgemm_ in this PyTorch");
  const float one = 1.0f, zero = 0.0f;
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  product("N", "N", &M, &M, &M, &one, reinterpret_cast<float*>(B), &M, reinterpret_cast<float*>(A), &M, &zero,
          reinterpret_cast<float*>(C), &M);
}
"""

extension = load_inline(
    name="blas_by_name",
    cpp_sources=CPP_SOURCE,
    functions=["tril_matmul"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
