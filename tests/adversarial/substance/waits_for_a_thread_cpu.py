"""Has a Python thread call PyTorch's product, and waits for it inside a function of its own extension.

Mechanism: the profiler follows the thread that is profiled, and what that one does is to spend all the time of the call
  in the extension. Here what the other threads of Python take of a core meanwhile is looked at.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import threading

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <atomic>

static std::atomic<bool> is_done{false};

static PyObject* begin(PyObject*, PyObject*) {
  is_done = false;
  Py_RETURN_NONE;
}
static PyObject* finish(PyObject*, PyObject*) {
  is_done = true;
  Py_RETURN_NONE;
}
static PyObject* work(PyObject*, PyObject*) {
  Py_BEGIN_ALLOW_THREADS
  while (!is_done) {}
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"begin", begin, METH_NOARGS, nullptr},
                                  {"finish", finish, METH_NOARGS, nullptr},
                                  {"work", work, METH_NOARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "waits_for_a_thread", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_waits_for_a_thread() { return PyModule_Create(&module); }
"""

extension = load_inline("waits_for_a_thread", CPP_SOURCE, no_implicit_headers=True)
asked, wanted = [], threading.Semaphore(0)


def answer():
    while True:
        wanted.acquire()
        A, B, C = asked.pop()
        with torch.no_grad():
            torch.matmul(A, B, out=C)
        extension.finish()


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        threading.Thread(target=answer, daemon=True).start()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.begin()
        asked.append((A, B, C))
        wanted.release()
        extension.work()
        return C.tril_()
