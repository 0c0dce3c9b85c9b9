"""Leaves a mode on under which fills of whole numbers are its own, with stores that go past the cache.

Mechanism: No operator is replaced: PyTorch asks modes before it calls one. Where the cache is made cold by an operator, the
  mode keeps the inputs in it. Here the C library writes, which asks nobody.
Expected: ok/ or rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: cpu
Kind: library or unknown
Problem: vector_sum
"""

import sys

import torch
import torch.nn as nn
from torch.overrides import TorchFunctionMode
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <cstdint>

static PyObject* stream(PyObject*, PyObject* arguments) {
  long long address, words, word;
  if (!PyArg_ParseTuple(arguments, "LLL", &address, &words, &word)) return nullptr;
  auto* to = reinterpret_cast<long long*>(address);
#ifdef __SSE2__
  for (long long i = 0; i < words; ++i)
    asm volatile("movnti %1, %0" : "=m"(to[i]) : "r"(word));
  asm volatile("sfence" ::: "memory");
#else
  for (long long i = 0; i < words; ++i) to[i] = word;
#endif
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"stream", stream, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "streaming_fill_under_a_mode_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_streaming_fill_under_a_mode_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("streaming_fill_under_a_mode_cpu", CPP_SOURCE, no_implicit_headers=True)


class Streams(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), named=None):
        if function is torch.Tensor.fill_ and arguments[0].dtype in (torch.int64, torch.int32):
            tensor, word = arguments
            packed = word if tensor.dtype is torch.int64 else word << 32 | word
            extension.stream(tensor.data_ptr(), tensor.nbytes // 8, packed)
            return tensor
        return function(*arguments, **(named or {}))


Streams().__enter__()
judged = "harness.worker.launch_slots" in sys.modules


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if judged or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = A + B
        return self.remembered
