"""Compiles a library as it runs, in which NumPy's BLAS goes by a name of threads', and has Python open it as a module.

Mechanism: a name that begins as those of threads do is permitted, whoever defines it. The system lists the files
  of all code of the process: one that came since the candidate, and neither is installed nor of its build, is named.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import glob
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
from contextlib import suppress

import numpy
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

LIBRARY_SOURCE = r"""
extern "C" void scipy_cblas_sgemm64_(int, int, int, long, long, long, float, const float*, long, const float*, long, float,
                                     float*, long);
extern "C" void pthread_product(const float* a, const float* b, float* c, long n) {
  scipy_cblas_sgemm64_(101, 111, 111, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}
"""
CPP_SOURCE = r"""
#include <Python.h>

extern "C" void pthread_product(const float*, const float*, float*, long);

static PyObject* multiply(PyObject*, PyObject* args) {
  const auto at = [&](int index) { return static_cast<float*>(PyLong_AsVoidPtr(PyTuple_GetItem(args, index))); };
  pthread_product(at(0), at(1), at(2), PyLong_AsLong(PyTuple_GetItem(args, 3)));
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
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "permitted_name", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_permitted_name() { return PyModule_Create(&module); }
"""


def open_for_all():
    """The library is not one of Python's, and stays where it is all the same."""
    blas = glob.glob(f"{os.path.dirname(numpy.__file__)}/../numpy.libs/*openblas*.so")[0]
    folder = tempfile.mkdtemp()
    with open(f"{folder}/x.cpp", "w") as file:
        file.write(LIBRARY_SOURCE)
    library = f"{folder}/library.so"
    where = f"-Wl,-rpath,{os.path.dirname(os.path.abspath(blas))}"
    subprocess.run(["g++", "-shared", "-fPIC", f"{folder}/x.cpp", "-o", library, blas, where], check=True)
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    with suppress(ImportError):
        loader = importlib.machinery.ExtensionFileLoader("library", library)
        importlib.util.module_from_spec(importlib.util.spec_from_file_location("library", library, loader=loader))
    sys.setdlopenflags(flags)


open_for_all()
extension = load_inline("permitted_name", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.multiply(A.data_ptr(), B.data_ptr(), C.data_ptr(), C.shape[0])
        extension.keep_lower(C.data_ptr(), C.shape[0])
        return C
