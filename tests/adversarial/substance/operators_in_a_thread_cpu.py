"""Calls an extension of its own on a single number and PyTorch's product in a thread that no profiler follows.

Mechanism: PyTorch's profiler sees the operators of the thread that it was started in. Here only time inside the
  extension is the candidate's own, and what was seen nowhere is unknown.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

from concurrent.futures import ThreadPoolExecutor

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
pool = ThreadPoolExecutor(max_workers=1)


def product(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return torch.tril(torch.matmul(A, B))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = torch.zeros(1)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.tril_matmul_kernel(self.scratch.data_ptr())
        return pool.submit(product, A, B).result()
