"""Finds cuBLAS among the loaded libraries by name, from C++, calls its product, and masks with a kernel of its own.

Mechanism: no operator of PyTorch runs, nothing is linked, and the extension does have a kernel that does something.
  Here each kernel of a traced launch counts by its time, and cuBLAS's have cuBLAS's names.
Expected: ok/
Fools: substance
Device: cuda
Kind: library or mixed
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <stdexcept>

extern "C" void mask(long long C, int M);

using Create = int (*)(void**);
using Product = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
                        const float*, float*, int);

static void* library() {
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"}) {
    if (void* found = dlopen(name, RTLD_LAZY)) return found;
  }
  throw std::runtime_error("there is no cuBLAS here");
}

void tril_matmul(long long A, long long B, long long C, int M) {
  static const auto create = reinterpret_cast<Create>(dlsym(library(), "cublasCreate_v2"));
  static const auto product = reinterpret_cast<Product>(dlsym(library(), "cublasSgemm_v2"));
  static void* handle = nullptr;
  if (!handle && create(&handle)) throw std::runtime_error("no handle");
  const float one = 1.0f, zero = 0.0f;
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  if (product(handle, 0, 0, M, M, M, &one, reinterpret_cast<float*>(B), M, reinterpret_cast<float*>(A), M, &zero,
              reinterpret_cast<float*>(C), M)) {
    throw std::runtime_error("no product");
  }
  mask(C, M);
}
"""

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(float* C, int M) {
  const int i = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < j && j < M) C[(size_t)i * M + j] = 0.0f;
}

extern "C" void mask(long long C, int M) {
  tril_matmul_kernel<<<dim3((M + 255) / 256, M), 256>>>((float*)C, M);
}
"""

extension = load_inline(
    name="cublas_by_name",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["tril_matmul"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
