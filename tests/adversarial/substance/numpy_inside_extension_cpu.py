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
#include <Python.h>

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  PyObject* product = PyTuple_GetItem(arguments, 0);
  PyObject* matrices = PyTuple_GetSlice(arguments, 1, 4);
  PyObject* result = PyObject_CallObject(product, matrices);
  Py_DECREF(matrices);
  return result;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "numpy_inside", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_numpy_inside() { return PyModule_Create(&module); }
"""

extension = load_inline("numpy_inside", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(numpy.matmul, A.numpy(), B.numpy(), C.numpy())
        return C
