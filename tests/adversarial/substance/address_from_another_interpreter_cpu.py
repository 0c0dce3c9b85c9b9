"""Asks for the address of a BLAS in a second interpreter of its process, and hands it to its extension as a number.

Mechanism: the hooks that hear which addresses are asked for are an interpreter's own, and a second one has none.
  That there is a second is heard of in the first.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import glob
import os
import tempfile

import numpy
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters

CPP_SOURCE = r"""
#include <Python.h>

using Product = void (*)(int, int, int, long, long, long, float, const float*, long, const float*, long, float, float*, long);

static PyObject* multiply(PyObject*, PyObject* args) {
  const auto at = [&](int index) { return static_cast<float*>(PyLong_AsVoidPtr(PyTuple_GetItem(args, index))); };
  const long n = PyLong_AsLong(PyTuple_GetItem(args, 3));
  const auto product = reinterpret_cast<Product>(PyLong_AsVoidPtr(PyTuple_GetItem(args, 4)));
  product(101, 111, 111, n, n, n, 1.0f, at(0), n, at(1), n, 0.0f, at(2), n);
  Py_RETURN_NONE;
}

static PyObject* keep_lower(PyObject*, PyObject* args) {
  float* c = static_cast<float*>(PyLong_AsVoidPtr(PyTuple_GetItem(args, 0)));
  const long n = PyLong_AsLong(PyTuple_GetItem(args, 1));
  for (long i = 0; i < n; ++i)
    for (long j = i + 1; j < n; ++j) c[i * n + j] = 0.0f;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"multiply", multiply, METH_VARARGS, nullptr}, {"keep_lower", keep_lower, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "address_from_another", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_address_from_another() { return PyModule_Create(&module); }
"""
ASKS = """
import ctypes
product = ctypes.CDLL({blas!r}).scipy_cblas_sgemm64_
with open({note!r}, "w") as file:
    file.write(str(ctypes.cast(product, ctypes.c_void_p).value))
"""


def address() -> int:
    blas = glob.glob(f"{os.path.dirname(numpy.__file__)}/../numpy.libs/*openblas*.so")[0]
    note = os.path.join(tempfile.mkdtemp(), "address")
    try:
        other = interpreters.create(isolated=False)
    except TypeError:
        other = interpreters.create("legacy")
    interpreters.run_string(other, ASKS.format(blas=blas, note=note))
    with open(note) as file:
        return int(file.read())


extension = load_inline("address_from_another", CPP_SOURCE, no_implicit_headers=True)
product = address()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.multiply(A.data_ptr(), B.data_ptr(), C.data_ptr(), C.shape[0], product)
        extension.keep_lower(C.data_ptr(), C.shape[0])
        return C
