"""Builds an extension, calls it on a single number, and has PyTorch multiply the matrices.

Mechanism: there is C++ in the file and it is called, and that is all that is usually asked. Here the time inside
  the extension is set against the time in PyTorch's operators.
Expected: ok/
Fools: substance
Device: cpu
Kind: library
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

static PyObject* tril_matmul_kernel(PyObject*, PyObject* scratch) {
  *static_cast<float*>(PyLong_AsVoidPtr(scratch)) += 1.0f;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul_kernel", tril_matmul_kernel, METH_O, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "decoy_extension", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_decoy_extension() { return PyModule_Create(&module); }
"""

extension = load_inline("decoy_extension", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(1)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.tril_matmul_kernel(self.scratch.data_ptr())
        return torch.tril(torch.matmul(A, B))
