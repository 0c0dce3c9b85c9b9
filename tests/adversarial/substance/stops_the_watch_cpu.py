"""Has its extension take the interpreter's profile function away while NumPy's BLAS multiplies, and put it back.

Mechanism: what is seen of the first call into the extension is its beginning, and of the second its end, so that all
  between the two seems to be one. Here who takes that function from elsewhere is not believed.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import numpy
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

static Py_tracefunc watch = nullptr;
static PyObject* watched_by = nullptr;

static PyObject* begin(PyObject*, PyObject*) {
  PyThreadState* state = PyThreadState_Get();
  watch = state->c_profilefunc;
  watched_by = state->c_profileobj;
  Py_XINCREF(watched_by);
  if (watch != nullptr) PyEval_SetProfile(nullptr, nullptr);
  Py_RETURN_NONE;
}
static PyObject* end(PyObject*, PyObject*) {
  if (watch != nullptr) PyEval_SetProfile(watch, watched_by);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"begin", begin, METH_NOARGS, nullptr},
                                  {"end", end, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "stops_the_watch", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_stops_the_watch() { return PyModule_Create(&module); }
"""

extension = load_inline("stops_the_watch", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.begin()
        numpy.matmul(A.numpy(), B.numpy(), C.numpy())
        extension.end()
        return C.tril_()
