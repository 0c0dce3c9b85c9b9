"""Has a native thread of its extension call NumPy's product by its address, while the call waits for it.

Mechanism: the thread is nobody's whom Python knows, and takes no name from elsewhere. Here the system looks at all threads of
  the process, whoever began them, and at what they run.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

from numpy._core import _multiarray_umath
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <thread>

static PyObject* product(PyObject* arguments) {
  auto* function = reinterpret_cast<PyCFunctionObject*>(PyTuple_GetItem(arguments, 0));
  const auto address = reinterpret_cast<void (*)(void)>(function->m_ml->ml_meth);
  PyObject* matrices = PyTuple_GetSlice(arguments, 1, 4);
  if (!(function->m_ml->ml_flags & METH_FASTCALL))
    return reinterpret_cast<PyCFunctionWithKeywords>(address)(function->m_self, matrices, nullptr);
  PyObject* each[] = {PyTuple_GetItem(matrices, 0), PyTuple_GetItem(matrices, 1), PyTuple_GetItem(matrices, 2)};
  using Fast = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
  return reinterpret_cast<Fast>(address)(function->m_self, each, 3, nullptr);
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  PyObject* result = nullptr;
  Py_BEGIN_ALLOW_THREADS
  std::thread([&] {
    PyGILState_STATE state = PyGILState_Ensure();
    result = product(arguments);
    PyGILState_Release(state);
  }).join();
  Py_END_ALLOW_THREADS
  return result;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "numpy_in_a_native_thread_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_numpy_in_a_native_thread_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("numpy_in_a_native_thread_cpu", CPP_SOURCE, no_implicit_headers=True, extra_ldflags=["-pthread"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(_multiarray_umath.dot, A.numpy(), B.numpy(), C.numpy())
        return C
