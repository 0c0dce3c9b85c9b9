"""Multiplies by PyTorch's chain_matmul, in a thread of its extension's own.

Mechanism: the profiler follows the threads that PyTorch begins, and who looks for products among what an extension
  takes from PyTorch may not know them all by name. Here every operator beside a thread counts that computes anything.
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
#include <ATen/ops/chain_matmul_ops.h>
#include <ATen/ops/tril_ops.h>
#include <thread>

static at::Tensor matrix(long long address, int size) {
  return at::from_blob(reinterpret_cast<void*>(address), {size, size}, at::kFloat);
}

static PyObject* tril_matmul_kernel(PyObject*, PyObject* given) {
  long long a, b, c;
  int size;
  if (!PyArg_ParseTuple(given, "LLLi", &a, &b, &c, &size)) return nullptr;
  std::thread worker([&] {
    at::Tensor both[2] = {matrix(a, size), matrix(b, size)}, out = matrix(c, size);
    at::_ops::tril_out::call(at::_ops::chain_matmul::call(both), 0, out);
  });
  worker.join();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul_kernel", tril_matmul_kernel, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "product_by_another_name_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_product_by_another_name_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("product_by_another_name_cpu", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul_kernel(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
