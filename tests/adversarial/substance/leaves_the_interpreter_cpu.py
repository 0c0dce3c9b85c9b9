"""Has a thread of Python's leave the interpreter and multiply by PyTorch in C++, while its own function waits.

Mechanism: a thread without a state of the interpreter's stands in none of Python's lists. PyTorch's profiler
  is asked for what runs in all threads, whoever began them. As it waits it spins, which slows eager down now and then.
Expected: ok/ or rejected/clocks_disagree
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import threading
import time

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <atomic>

// A tensor as Python holds it, and the product's name, without PyTorch's headers.
namespace at {
class Tensor { void* implementation; };
namespace _ops { struct mm_out { static Tensor& call(const Tensor&, const Tensor&, Tensor&); }; }
}

static at::Tensor* tensor_of(PyObject* object) {
  return reinterpret_cast<at::Tensor*>(reinterpret_cast<char*>(object) + sizeof(PyObject));
}

static std::atomic<int> turn{0};
static at::Tensor *a, *b, *c;

static PyObject* serve(PyObject*, PyObject*) {
  PyThreadState_Clear(PyThreadState_Get());
  PyThreadState_DeleteCurrent();
  for (;;) {
    while (turn.load() != 1) {}
    at::_ops::mm_out::call(*a, *b, *c);
    turn = 2;
  }
}

static PyObject* multiply(PyObject*, PyObject* args) {
  a = tensor_of(PyTuple_GetItem(args, 0)), b = tensor_of(PyTuple_GetItem(args, 1)), c = tensor_of(PyTuple_GetItem(args, 2));
  Py_BEGIN_ALLOW_THREADS
  turn = 1;
  while (turn.load() != 2) {}
  turn = 0;
  Py_END_ALLOW_THREADS
  Py_RETURN_NONE;
}

static PyObject* keep_lower(PyObject*, PyObject* args) {
  float* c = static_cast<float*>(PyLong_AsVoidPtr(PyTuple_GetItem(args, 0)));
  const long n = PyLong_AsLong(PyTuple_GetItem(args, 1));
  for (long i = 0; i < n; ++i)
    for (long j = i + 1; j < n; ++j) c[i * n + j] = 0.0f;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"serve", serve, METH_VARARGS, nullptr}, {"multiply", multiply, METH_VARARGS, nullptr}, {"keep_lower", keep_lower, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "leaves_the_interpreter", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_leaves_the_interpreter() { return PyModule_Create(&module); }
"""

extension = load_inline("leaves_the_interpreter", CPP_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        threading.Thread(target=extension.serve, daemon=True).start()
        time.sleep(0.05)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.multiply(A, B, C)
        extension.keep_lower(C.data_ptr(), C.shape[0])
        return C
