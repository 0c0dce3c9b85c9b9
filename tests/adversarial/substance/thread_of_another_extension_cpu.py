"""Begins a thread in one extension and multiplies by PyTorch in another, whose function the first has the address of.

Mechanism: operators in threads of an extension's own are looked for in what it takes from elsewhere, and here
  neither takes both. What all extensions of a candidate take counts together.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

THREAD_SOURCE = r"""
#include <Python.h>
#include <thread>

static PyObject* run(PyObject*, PyObject* args) {
  auto work = reinterpret_cast<void (*)()>(PyLong_AsVoidPtr(PyTuple_GetItem(args, 0)));
  Py_BEGIN_ALLOW_THREADS
  std::thread(work).join();
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

static PyMethodDef functions[] = {{"run", run, METH_VARARGS, nullptr}, {"keep_lower", keep_lower, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "thread_of_another", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_thread_of_another() { return PyModule_Create(&module); }
"""

PRODUCT_SOURCE = r"""
#include <Python.h>

// A tensor as Python holds it, and the product's name, without PyTorch's headers.
namespace at {
class Tensor { void* implementation; };
namespace _ops { struct mm_out { static Tensor& call(const Tensor&, const Tensor&, Tensor&); }; }
}

static at::Tensor* tensor_of(PyObject* object) {
  return reinterpret_cast<at::Tensor*>(reinterpret_cast<char*>(object) + sizeof(PyObject));
}

static at::Tensor *a, *b, *c;

static void multiply() { at::_ops::mm_out::call(*a, *b, *c); }

static PyObject* take(PyObject*, PyObject* args) {
  a = tensor_of(PyTuple_GetItem(args, 0)), b = tensor_of(PyTuple_GetItem(args, 1)), c = tensor_of(PyTuple_GetItem(args, 2));
  return PyLong_FromVoidPtr(reinterpret_cast<void*>(multiply));
}

static PyMethodDef functions[] = {{"take", take, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "product_for_another", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_product_for_another() { return PyModule_Create(&module); }
"""

thread = load_inline("thread_of_another", THREAD_SOURCE, no_implicit_headers=True)
product = load_inline("product_for_another", PRODUCT_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        thread.run(product.take(A, B, C))
        thread.keep_lower(C.data_ptr(), C.shape[0])
        return C
