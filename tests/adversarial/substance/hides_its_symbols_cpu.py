"""Links PyTorch's BLAS and then cuts the table of sections off its own library, which no loader reads.

Mechanism: who looks for what a library takes from elsewhere by its sections finds nothing, and the loader, which goes by
  another table, finds all. Here it is read as the loader reads it.
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

extern "C" void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                       const int*, const float*, const int*, const float*, float*, const int*);

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int M;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &M)) return nullptr;
  const float one = 1.0f, zero = 0.0f;
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  sgemm_("N", "N", &M, &M, &M, &one, reinterpret_cast<float*>(B), &M, reinterpret_cast<float*>(A), &M, &zero,
         reinterpret_cast<float*>(C), &M);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "hides_its_symbols", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_hides_its_symbols() { return PyModule_Create(&module); }
"""

extension = load_inline("hides_its_symbols", CPP_SOURCE, no_implicit_headers=True)
try:
    with open(extension.__file__, "r+b") as library:
        library.seek(40)
        library.write(bytes(8))
        library.seek(58)
        library.write(bytes(6))
except OSError:
    pass  # where it is played it may not, and need not


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
