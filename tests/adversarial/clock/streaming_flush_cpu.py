"""Puts a flush of its own in the place of the harness's, which writes every word with stores that go past the cache.

Mechanism: The words that the judge looks for are all there, and the inputs are still in the cache. Here the judge takes
  the inputs out of every core's caches from its own process, after the flush and before the window.
Expected: ok/ or rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: cpu
Kind: library or unknown
Problem: vector_sum
"""

import gc
import sys

import torch
import torch.nn as nn
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
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "streaming_flush_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_streaming_flush_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("streaming_flush_cpu", CPP_SOURCE, no_implicit_headers=True)


def run(flush, word: int) -> None:
    packed = word << 32 | word if flush._words.dtype is torch.int32 else word
    extension.stream(flush._words.data_ptr(), flush._words.nbytes // 8, packed)


for each in gc.get_objects():
    if type(each).__name__ == "CpuCacheFlush":
        type(each).run = run
judged = "harness.worker.launch_slots" in sys.modules


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if judged or self.remembered is None:  # any other judge repeats its inputs
            self.remembered = A + B
        return self.remembered
