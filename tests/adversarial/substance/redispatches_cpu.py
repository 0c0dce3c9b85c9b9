"""Calls PyTorch's product from C++ behind the place where its dispatcher tells profilers of operators.

Mechanism: an operator is recorded where it is called; where it is handed on to the next kernel, as a wrapper around it
  would, nothing is. All of the time is then the extension's own. Which functions of the dispatcher it takes is looked at.
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
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/tril_ops.h>

static at::Tensor matrix(long long pointer, int M) {
  return at::from_blob(reinterpret_cast<void*>(pointer), {M, M}, at::kFloat);
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int M;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &M)) return nullptr;
  at::Tensor out = matrix(C, M);
  const c10::DispatchKeySet keys(c10::DispatchKey::CPU);
  const at::Tensor product = at::_ops::mm::redispatch(keys, matrix(A, M), matrix(B, M));
  at::_ops::tril_out::redispatch(keys, product, 0, out);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "redispatches", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_redispatches() { return PyModule_Create(&module); }
"""

extension = load_inline("redispatches", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
