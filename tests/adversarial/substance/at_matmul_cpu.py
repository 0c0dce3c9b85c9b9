"""Calls PyTorch's product from C++, in an extension of its own.

Mechanism: the work is done inside a function of the extension, and no operator is called from Python. Here time in
  PyTorch's operators is PyTorch's, whoever calls them.
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
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul_ops.h>
#include <ATen/ops/tril_ops.h>

static at::Tensor matrix(long long pointer, int M) {
  return at::from_blob(reinterpret_cast<void*>(pointer), {M, M}, at::kFloat);
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int M;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &M)) return nullptr;
  at::Tensor out = matrix(C, M);
  at::_ops::tril_out::call(at::_ops::matmul::call(matrix(A, M), matrix(B, M)), 0, out);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "at_matmul", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_at_matmul() { return PyModule_Create(&module); }
"""

extension = load_inline("at_matmul", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
