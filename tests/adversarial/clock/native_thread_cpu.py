"""Hands the pointers to a native thread, detached, and returns the tensor that the thread has only begun to fill.

Mechanism: No Python thread is to be seen, no lock is held, and the call is over in microseconds. Here the output is
  copied as soon as the clock stops, and what is written after that is not seen.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: cpu
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <Python.h>
#include <algorithm>
#include <thread>

static void product(const float* A, const float* B, float* C, long M) {
  for (long i = 0; i < M; ++i) {
    float* row = C + i * M;
    std::fill(row, row + M, 0.0f);
    for (long k = 0; k <= i; ++k)
      for (long j = 0; j <= k; ++j) row[j] += A[i * M + k] * B[k * M + j];
  }
}

static PyObject* start(PyObject*, PyObject* arguments) {
  long long A, B, C;
  long M;
  int wait;
  if (!PyArg_ParseTuple(arguments, "LLLlp", &A, &B, &C, &M, &wait)) return nullptr;
  std::thread worker(product, reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B),
                     reinterpret_cast<float*>(C), M);
  if (wait) worker.join(); else worker.detach();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"start", start, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "native_thread", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_native_thread() { return PyModule_Create(&module); }
"""

extension = load_inline("native_thread", CPP, extra_cflags=["-O3"], no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []  # a detached thread still writes to what was freed

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.start(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], not self.kept)
        self.kept = [*self.kept, (A, B, C)][-32:]
        return C
