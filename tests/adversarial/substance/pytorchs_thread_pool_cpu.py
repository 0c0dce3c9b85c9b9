"""Has a pool of PyTorch's own threads call PyTorch's product.

Mechanism: no thread is begun by name in the extension, and the pool's are followed by no profiler. Here the pool counts as
  threads do.
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
#include <c10/core/thread_pool.h>

static at::Tensor matrix(long long address, int size) {
  return at::from_blob(reinterpret_cast<void*>(address), {size, size}, at::kFloat);
}

static PyObject* tril_matmul_kernel(PyObject*, PyObject* given) {
  long long a, b, c;
  int size;
  if (!PyArg_ParseTuple(given, "LLLi", &a, &b, &c, &size)) return nullptr;
  static c10::ThreadPool* pool = new c10::ThreadPool(1);
  pool->run([&] {
    at::Tensor out = matrix(c, size);
    at::_ops::tril_out::call(at::_ops::matmul::call(matrix(a, size), matrix(b, size)), 0, out);
  });
  pool->waitWorkComplete();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul_kernel", tril_matmul_kernel, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "pytorchs_thread_pool_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_pytorchs_thread_pool_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("pytorchs_thread_pool_cpu", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul_kernel(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
