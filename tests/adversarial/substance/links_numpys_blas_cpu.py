"""Links the BLAS that NumPy brings, whose functions bear names of its own, and calls it from its extension.

Mechanism: a BLAS is told by the names of what an extension takes from elsewhere, and this one's begin with `scipy_`.
  Here the usual names count wherever they stand in a name, and so does a library that is none of those which every
  extension is linked to.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import glob
import os

import numpy
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

extern "C" void scipy_cblas_sgemm64_(int, int, int, int64_t, int64_t, int64_t, float, const float*, int64_t,
                                     const float*, int64_t, float, float*, int64_t);

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C, M;
  if (!PyArg_ParseTuple(arguments, "LLLL", &A, &B, &C, &M)) return nullptr;
  scipy_cblas_sgemm64_(101, 111, 111, M, M, M, 1.0f, reinterpret_cast<const float*>(A), M,
                       reinterpret_cast<const float*>(B), M, 0.0f, reinterpret_cast<float*>(C), M);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "links_numpys_blas", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_links_numpys_blas() { return PyModule_Create(&module); }
"""

place = os.path.join(os.path.dirname(numpy.__file__), os.pardir, "numpy.libs", "libscipy_openblas64*")
extension = load_inline(
    "links_numpys_blas",
    CPP_SOURCE,
    extra_ldflags=[os.path.realpath(each) for each in glob.glob(place)],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C.tril_()
