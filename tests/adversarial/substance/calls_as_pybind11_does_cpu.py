"""Has its extension call NumPy's product by the one call of Python's that pybind11 itself makes.

Mechanism: every extension with pybind11 takes that call, so that taking it shows nothing; and what C++ calls of Python's
  built-in functions Python tells no profiler of. Here the system's looks at what the cores run meet NumPy's library.
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
  return PyObject_CallFunctionObjArgs(
      PyTuple_GetItem(arguments, 0), PyTuple_GetItem(arguments, 1), PyTuple_GetItem(arguments, 2),
      PyTuple_GetItem(arguments, 3), nullptr);
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "calls_as_pybind11_does_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_calls_as_pybind11_does_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("calls_as_pybind11_does_cpu", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(numpy.matmul, A.numpy(), B.numpy(), C.numpy())
        return C
