"""Multiplies with oneDNN through an operator of PyTorch's, and says in a string that those are its own.

Mechanism: operators that a source registers are its own work, and which it registers is read from its strings. A string
  that registers nothing costs a line, and PyTorch has operators outside of `aten` that multiply. Here a namespace in
  which PyTorch itself has operators is nobody else's.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CLAIM = "TORCH_LIBRARY_FRAGMENT(mkldnn, module)"
CPP_SOURCE = r"""
#include <Python.h>

static PyObject* decoy(PyObject*, PyObject*) { Py_RETURN_NONE; }

static PyMethodDef functions[] = {{"decoy", decoy, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "claims_pytorchs_operators", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_claims_pytorchs_operators() { return PyModule_Create(&module); }
"""

extension = load_inline("claims_pytorchs_operators", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.decoy()
        return torch.ops.mkldnn._linear_pointwise(A, B.t(), None, "none", [], "").tril_()
