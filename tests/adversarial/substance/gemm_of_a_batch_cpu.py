"""Asks PyTorch's BLAS for a batch of one product, by a name that no list of its products need hold.

Mechanism: lists of a library's names are never whole: `sgemm` has a dozen relatives, and each library some of its own.
  Here what may be taken from elsewhere is listed, and this is not.
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

extern "C" void sgemm_batch_(const char*, const char*, const int*, const int*, const int*, const float*, const float**,
                             const int*, const float**, const int*, const float*, float**, const int*, const int*,
                             const int*);

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C, M;
  if (!PyArg_ParseTuple(arguments, "LLLL", &A, &B, &C, &M)) return nullptr;
  const int m = static_cast<int>(M), groups = 1, size = 1;
  const float one = 1.0f, zero = 0.0f;
  const float *a = reinterpret_cast<float*>(A), *b = reinterpret_cast<float*>(B);
  float* c = reinterpret_cast<float*>(C);
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  sgemm_batch_("N", "N", &m, &m, &m, &one, &b, &m, &a, &m, &zero, &c, &m, &groups, &size);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "gemm_of_a_batch", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_gemm_of_a_batch() { return PyModule_Create(&module); }
"""

extension = load_inline("gemm_of_a_batch", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C.tril_()
