"""Has another process call PyTorch's product in shared memory, and waits for it inside a function of its own extension.

Mechanism: no profiler of this process sees what another one does, and this one spends all the time of the call in the
  extension. Here what the processes that a candidate began take of a core meanwhile is looked at, from outside.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import multiprocessing
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <sched.h>

static PyObject* work(PyObject*, PyObject* word) {
  volatile long long* state = static_cast<long long*>(PyLong_AsVoidPtr(word));
  Py_BEGIN_ALLOW_THREADS
  while (*state != 1) sched_yield();
  *state = 0;
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"work", work, METH_O, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "waits_for_a_process", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_waits_for_a_process() { return PyModule_Create(&module); }
"""

extension = load_inline("waits_for_a_process", CPP_SOURCE, no_implicit_headers=True)


def answer(asked, state, A, B, C):
    torch.set_num_threads(1)
    while os.read(asked, 1):
        with torch.no_grad():
            torch.matmul(A, B, out=C)
        state.fill_(1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.shape not in self.shared:
            asked, asking = os.pipe()
            state = torch.zeros(1, dtype=torch.int64).share_memory_()
            shared = state, *(torch.empty_like(A).share_memory_() for _ in range(3))
            multiprocessing.get_context("fork").Process(target=answer, args=(asked, *shared), daemon=True).start()
            self.shared[A.shape] = asking, *shared
        asking, state, *shared, C = self.shared[A.shape]
        for own, given in zip(shared, (A, B)):
            own.copy_(given)
        os.write(asking, b"?")
        extension.work(state.data_ptr())
        return C.tril()
