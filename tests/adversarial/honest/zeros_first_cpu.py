"""Takes zeros from PyTorch for each output and adds its products to them, as many kernels do.

Mechanism: PyTorch fills the output, which is nobody's work, for as long as that takes it.
Expected: ok/
Fools: nothing
Device: cpu
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

static PyObject* add_product(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int M;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &M)) return nullptr;
  const float *a = reinterpret_cast<float*>(A), *b = reinterpret_cast<float*>(B);
  float* c = reinterpret_cast<float*>(C);
  for (int i = 0; i < M; ++i)
    for (int k = 0; k <= i; ++k)
      for (int j = 0; j <= k; ++j) c[i * M + j] += a[i * M + k] * b[k * M + j];
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"add_product", add_product, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "zeros_first_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_zeros_first_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("zeros_first_cpu", CPP_SOURCE, extra_cflags=["-O3", "-march=native"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.zeros_like(A)
        extension.add_product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
