"""Compiles loops of its own, and puts another library, which multiplies by PyTorch, in their place before the build ends.

Mechanism: a build runs the candidate's code, and what lies in its folder at the end would count as compiled from its
  sources. A process that runs none of that code compiles, in a folder that this one can only read.
Expected: build_failed/import_error
Fools: substance
Device: cpu
"""

import os
import pathlib

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

OWN = r"""
#include <Python.h>

static PyObject* product(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int n;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &n)) return nullptr;
  const float *x = reinterpret_cast<float*>(A), *y = reinterpret_cast<float*>(B);
  float* z = reinterpret_cast<float*>(C);
  for (int i = 0; i < n; ++i)
    for (int k = 0; k <= i; ++k)
      for (int j = 0; j <= k; ++j) z[i * n + j] += x[i * n + k] * y[k * n + j];
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"product", product, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "swapped", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_swapped() { return PyModule_Create(&module); }
"""
PYTORCHS = r"""
#include <Python.h>
#include <dlfcn.h>

using Product = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                         const int*, const float*, const int*, const float*, float*, const int*);

static PyObject* product(PyObject*, PyObject* arguments) {
  long long A, B, C;
  int n;
  if (!PyArg_ParseTuple(arguments, "LLLi", &A, &B, &C, &n)) return nullptr;
  static const auto sgemm = reinterpret_cast<Product>(dlsym(dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD), "sgemm_"));
  const float one = 1.0f, zero = 0.0f;
  sgemm("N", "N", &n, &n, &n, &one, reinterpret_cast<float*>(B), &n, reinterpret_cast<float*>(A), &n, &zero,
        reinterpret_cast<float*>(C), &n);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"product", product, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "swapped", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_swapped() { return PyModule_Create(&module); }
PyMODINIT_FUNC PyInit_swapped_in() { return PyModule_Create(&module); }
"""

own = load_inline("swapped", OWN, extra_cflags=["-O3"], no_implicit_headers=True)
if "MAX_JOBS" in os.environ:  # what a build sets
    other = load_inline("swapped_in", PYTORCHS, extra_cflags=["-O3"], no_implicit_headers=True)
    place = pathlib.Path(own.__file__)
    place.unlink()
    place.write_bytes(pathlib.Path(other.__file__).read_bytes())


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.zeros_like(A)
        own.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
