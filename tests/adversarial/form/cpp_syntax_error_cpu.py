"""Forgets the semicolon of a C++ statement.

Mechanism: g++ reports the line after it, line 6 of the source, among fifty lines of ninja. The reason
  names the line of this file.
Expected: build_failed/compile_error
Fools: nothing
Device: cpu
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

static PyObject* sum_to(PyObject*, PyObject* count) {
  const long last = PyLong_AsLong(count) - 1
  return PyLong_FromLong(last * (last + 1) / 2);
}

static PyMethodDef functions[] = {{"sum_to", sum_to, METH_O, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "cpp_syntax_error", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_cpp_syntax_error() { return PyModule_Create(&module); }
"""

extension = load_inline("cpp_syntax_error", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.tril(torch.matmul(A, B)) * extension.sum_to(2)
