"""Has its extension ask a map for its next, which is NumPy's product of the two matrices.

Mechanism: an iterator is an object like any other, and to ask it for its next calls no function by name. Here the system's
  looks at what the cores run meet NumPy's library.
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
  return PyIter_Next(PyTuple_GetItem(arguments, 0));
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "next_of_a_map_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_next_of_a_map_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("next_of_a_map_cpu", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(map(numpy.matmul, [A.numpy()], [B.numpy()], [C.numpy()]))
        return C
