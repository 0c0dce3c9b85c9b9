"""Begins a native thread that takes Python's lock and calls torch.mm there, while its own function waits.

Mechanism: the extension takes no operator's name, and what Python's profile function sees is its own thread's.
  PyTorch's profiler is asked for what runs in all threads.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <thread>

static PyObject* multiply(PyObject*, PyObject* args) {
  PyObject *function = PyTuple_GetItem(args, 0), *a = PyTuple_GetItem(args, 1), *b = PyTuple_GetItem(args, 2);
  PyObject* made = nullptr;
  Py_BEGIN_ALLOW_THREADS
  std::thread([&] {
    const PyGILState_STATE state = PyGILState_Ensure();
    made = PyObject_CallFunctionObjArgs(function, a, b, nullptr);
    PyGILState_Release(state);
  }).join();
  Py_END_ALLOW_THREADS
  return made;
}

static PyObject* keep_lower(PyObject*, PyObject* args) {
  float* c = static_cast<float*>(PyLong_AsVoidPtr(PyTuple_GetItem(args, 0)));
  const long n = PyLong_AsLong(PyTuple_GetItem(args, 1));
  for (long i = 0; i < n; ++i)
    for (long j = i + 1; j < n; ++j) c[i * n + j] = 0.0f;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"multiply", multiply, METH_VARARGS, nullptr}, {"keep_lower", keep_lower, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "python_in_a_thread", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_python_in_a_thread() { return PyModule_Create(&module); }
"""

extension = load_inline("python_in_a_thread", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = extension.multiply(torch.mm, A, B)
        extension.keep_lower(C.data_ptr(), C.shape[0])
        return C
