"""Has NumPy's BLAS multiply, by a method that it gives the name of its own extension's module.

Mechanism: calls into an extension are told by the module that a function says it is of, and that can be written to.
  Here the functions that an extension brought are remembered as it is opened, and no other is taken for one.
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

static PyObject* decoy(PyObject*, PyObject*) { Py_RETURN_NONE; }

static PyMethodDef functions[] = {{"decoy", decoy, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "renames_a_method", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_renames_a_method() { return PyModule_Create(&module); }
"""

extension = load_inline("renames_a_method", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        product = A.numpy().dot
        product.__module__ = extension.__name__
        product(B.numpy(), C.numpy())
        return C.tril_()
