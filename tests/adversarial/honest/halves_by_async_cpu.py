"""Multiplies the upper and the lower half of the rows at once, one of them by `std::async`.

Mechanism: the thread runs its own code, and the library of C++ begins and ends it.
Expected: ok/
Fools: nothing
Device: cpu
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <cstring>
#include <future>

// Rows `begin` to `end` of the product of two lower triangular matrices.
static void rows(const float* A, const float* B, float* C, long long M, long long begin, long long end) {
  std::memset(C + begin * M, 0, (end - begin) * M * sizeof(float));
  for (long long i = begin; i < end; ++i)
    for (long long k = 0; k <= i; ++k)
      for (long long j = 0; j <= k; ++j) C[i * M + j] += A[i * M + k] * B[k * M + j];
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long a, b, c, M;
  if (!PyArg_ParseTuple(arguments, "LLLL", &a, &b, &c, &M)) return nullptr;
  const float *A = (const float*)a, *B = (const float*)b;
  const long long middle = M * 7 / 10;  // a row costs the square of its number
  auto upper = std::async(std::launch::async, rows, A, B, (float*)c, M, 0, middle);
  rows(A, B, (float*)c, M, middle, M);
  upper.get();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "halves_by_async_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_halves_by_async_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline(
    "halves_by_async_cpu", CPP_SOURCE, extra_cflags=["-O3", "-march=native"], no_implicit_headers=True
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
