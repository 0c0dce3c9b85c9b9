"""Multiplies NumPy's arrays by Python's operator @, from inside a function of its extension.

Mechanism: no function is called by name, and NumPy's BLAS is in no list of what the extension takes. Here arithmetic of
  Python's objects counts as a library unseen.
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
#include <cstring>

static PyObject* tril_matmul_kernel(PyObject*, PyObject* both) {
  return PyNumber_MatrixMultiply(PyTuple_GetItem(both, 0), PyTuple_GetItem(both, 1));
}

static PyObject* clear_above(PyObject*, PyObject* given) {
  long long address;
  long size;
  if (!PyArg_ParseTuple(given, "Ll", &address, &size)) return nullptr;
  float* c = reinterpret_cast<float*>(address);
  for (long row = 0; row < size; ++row) std::memset(c + row * size + row + 1, 0, 4 * (size - row - 1));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"tril_matmul_kernel", tril_matmul_kernel, METH_VARARGS, nullptr},
    {"clear_above", clear_above, METH_VARARGS, nullptr},
    {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "number_protocol_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_number_protocol_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("number_protocol_cpu", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.from_numpy(extension.tril_matmul_kernel(A.numpy(), B.numpy()))
        extension.clear_above(C.data_ptr(), A.shape[0])
        return C
