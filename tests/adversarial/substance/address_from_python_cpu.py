"""Has Python look up the address of a BLAS's product, and hands it to its extension as a number.

Mechanism: the extension takes nothing from anywhere: it calls what it is told to. Here Python's own notices of what it was
  asked to look up are heeded from before the candidate is imported.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import ctypes
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                      const int*, const float*, const int*, const float*, float*, const int*);

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C, M, product;
  if (!PyArg_ParseTuple(arguments, "LLLLL", &A, &B, &C, &M, &product)) return nullptr;
  const int m = static_cast<int>(M);
  const float one = 1.0f, zero = 0.0f;
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  reinterpret_cast<Gemm>(product)("N", "N", &m, &m, &m, &one, reinterpret_cast<float*>(B), &m, reinterpret_cast<float*>(A), &m, &zero,
       reinterpret_cast<float*>(C), &m);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "address_from_python", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_address_from_python() { return PyModule_Create(&module); }
"""

extension = load_inline("address_from_python", CPP_SOURCE, no_implicit_headers=True)
libraries = os.path.join(os.path.dirname(torch.__file__), "lib")
product = ctypes.cast(ctypes.CDLL(os.path.join(libraries, "libtorch_cpu.so")).sgemm_, ctypes.c_void_p).value


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], product)
        return C.tril_()
