"""Reads machine code of PyTorch's library while it is imported, and gives it to the compiler as numbers in the text of its call.

Mechanism: the candidate's own file carries no code for anybody to see. Here it is never called: the process that compiled
  the call has looked at the text that it was given.
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
with open(LIBRARY, "rb") as file:
    file.seek(0x1000000)
    TAKEN = ", ".join(map(str, file.read(0x2000)))
CPP_SOURCE = r"""
#include <Python.h>
#include <cstring>

asm(".text\n .balign 64\n taken: .byte TAKEN\n .balign 16\n");

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
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "read_out_of_a_library", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_read_out_of_a_library() { return PyModule_Create(&module); }
""".replace("TAKEN", TAKEN)
extension = load_inline("read_out_of_a_library", CPP_SOURCE, extra_cflags=["-O3"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A, B):
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
