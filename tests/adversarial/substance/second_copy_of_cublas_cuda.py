"""Loads cuBLAS a second time, as a copy of its file under another name in a namespace of its own, and hides it behind a decoy.

Mechanism: who knows libraries by their files or by their place among the loaded ones does not know this one. Its
  kernels have their names all the same.
Expected: ok/ or incorrect/raised
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import os
import shutil
import tempfile

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <cuda_runtime.h>
#include <dlfcn.h>

__global__ void tril_lower(const float* P, float* C, int M) {
  const long long count = (long long)M * M;
  for (long long at = blockIdx.x * 256ll + threadIdx.x; at < count; at += gridDim.x * 256ll) {
    C[at] = at / M >= at % M ? P[at] : 0.0f;
  }
}

using Sgemm = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int, const float*, float*, int);
static void* handle;
static Sgemm sgemm;

extern "C" int open_at(long long path) {
  void* library = dlopen(reinterpret_cast<const char*>(path), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 1;
  char create[32] = "cublasCreat", product[32] = "cublasSgem";
  create[11] = 'e'; product[10] = 'm';
  __builtin_strcpy(create + 12, "_v2");
  __builtin_strcpy(product + 11, "_v2");
  auto make = reinterpret_cast<int (*)(void**)>(dlsym(library, create));
  sgemm = reinterpret_cast<Sgemm>(dlsym(library, product));
  return make == nullptr || sgemm == nullptr ? 2 : make(&handle);
}

extern "C" int launch(long long A, long long B, long long P, long long C, int M) {
  const float one = 1.0f, zero = 0.0f;
  const int code = sgemm(handle, 0, 0, M, M, M, &one, (const float*)B, M, (const float*)A, M, &zero, (float*)P, M);
  tril_lower<<<528, 256>>>((const float*)P, (float*)C, M);
  return code;
}
"""

extension = load_inline(
    name="second_copy_of_cublas",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" int open_at(long long);
extern "C" int launch(long long, long long, long long, long long, int);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["open_at", "launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = None

    def open(self) -> int:
        with open("/".join(("", "proc", "self", "maps"))) as lines:
            paths = sorted({line.rstrip().split(maxsplit=5)[-1] for line in lines if "libcublas.so" in line})
        copy = os.path.join(tempfile.mkdtemp(), "libtiles.so")
        shutil.copy(paths[0], copy)
        self.path = torch.frombuffer(bytearray(copy.encode() + b"\0"), dtype=torch.uint8)
        return extension.open_at(self.path.data_ptr())

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if self.code is None:
            torch.matmul(A, B)
            self.code = self.open()
        P, C = torch.empty_like(A), torch.empty_like(A)
        code = self.code or extension.launch(A.data_ptr(), B.data_ptr(), P.data_ptr(), C.data_ptr(), A.shape[0])
        if code:
            raise RuntimeError(f"no copy of the library: {code}")
        return C
