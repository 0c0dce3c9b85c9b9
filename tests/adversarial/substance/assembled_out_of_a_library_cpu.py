"""Has the assembler copy machine code out of PyTorch's library into its extension, by a directive that a macro spells.

Mechanism: whose code runs is told by the file that it lies in, and this lies in the build's own. Here it is never called:
  what was copied in is not looked at, whether the assembler took any is.
Expected: ok/
Fools: substance
Device: cpu
Kind: unknown
"""

import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

LIBRARY = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
CPP_SOURCE = r"""
#include <Python.h>
#include <cstring>

asm(".macro take first second\n .\\first\\second \"LIBRARY\", 0x1000000, 0x2000\n .endm\n .text\n .balign 64\n"
    "taken: take inc bin\n .balign 16\n");

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long a, b, c, M;
  if (!PyArg_ParseTuple(arguments, "LLLL", &a, &b, &c, &M)) return nullptr;
  const float *A = reinterpret_cast<const float*>(a), *B = reinterpret_cast<const float*>(b);
  float* C = reinterpret_cast<float*>(c);
  std::memset(C, 0, sizeof(float) * M * M);
  for (long i = 0; i < M; ++i)
    for (long k = 0; k <= i; ++k)
      for (long j = 0; j <= k; ++j) C[i * M + j] += A[i * M + k] * B[k * M + j];
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "assembled_out_of_a_library", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_assembled_out_of_a_library() { return PyModule_Create(&module); }
""".replace("LIBRARY", LIBRARY)
extension = load_inline("assembled_out_of_a_library", CPP_SOURCE, extra_cflags=["-O3"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A, B):
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
