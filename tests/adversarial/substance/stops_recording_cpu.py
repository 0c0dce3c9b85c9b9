"""Calls PyTorch's product from C++ while it has PyTorch's recording of operators switched off.

Mechanism: profilers are told of an operator by a switch that any code in the thread may turn. All of the time is then the
  extension's own. Whether it takes the functions that turn the switch is looked at.
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
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul_ops.h>
#include <ATen/ops/tril_ops.h>
#include <ATen/record_function.h>

static at::Tensor matrix(long long pointer, int M) {
  return at::from_blob(reinterpret_cast<void*>(pointer), {M, M}, at::kFloat);
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int M;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &M)) return nullptr;
  at::Tensor out = matrix(C, M);
  at::RecordFunctionGuard unseen(false);
  at::_ops::tril_out::call(at::_ops::matmul::call(matrix(A, M), matrix(B, M)), 0, out);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "stops_recording", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_stops_recording() { return PyModule_Create(&module); }
"""

extension = load_inline("stops_recording", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
