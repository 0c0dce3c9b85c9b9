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
#include <Python.h>
#include <dlfcn.h>

using Product = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                         const int*, const float*, const int*, const float*, float*, const int*);

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int M;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &M)) return nullptr;
  void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
  static const auto product = reinterpret_cast<Product>(dlsym(library, "sgemm_"));
  if (!product) return PyErr_Format(PyExc_RuntimeError, "there is no sgemm_ in this PyTorch");
  const float one = 1.0f, zero = 0.0f;
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  product("N", "N", &M, &M, &M, &one, reinterpret_cast<float*>(B), &M, reinterpret_cast<float*>(A), &M, &zero,
          reinterpret_cast<float*>(C), &M);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "blas_by_name", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_blas_by_name() { return PyModule_Create(&module); }
"""

extension = load_inline("blas_by_name", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
