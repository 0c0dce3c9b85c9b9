"""Asks the system to disable all performance events of its task, and multiplies by PyTorch's BLAS.

Mechanism: a call of the system's says of itself that it disables the counters attached to a process, whoever made
  them. It disables those that the process made.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import os
import struct

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                      const int*, const float*, const int*, const float*, float*, const int*);
namespace at { void set_num_threads(int); }

static void librarys(long long A, long long B, long long C, int m, long long offset) {
  const float one = 1.0f, zero = 0.0f;
  // Columns first: the product of the transposes in turned order is the transpose of the product.
  reinterpret_cast<Gemm>(reinterpret_cast<long long>(static_cast<void (*)(int)>(&at::set_num_threads)) + offset)(
      "N", "N", &m, &m, &m, &one, reinterpret_cast<float*>(B), &m, reinterpret_cast<float*>(A), &m, &zero,
      reinterpret_cast<float*>(C), &m);
}

static long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result;
  register long fourth asm("r10") = d;
  register long fifth asm("r8") = e;
  register long sixth asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C, M, offset;
  if (!PyArg_ParseTuple(arguments, "LLLLL", &A, &B, &C, &M, &offset)) return nullptr;
  call(157, 31);  // prctl(PR_TASK_PERF_EVENTS_DISABLE)
  librarys(A, B, C, static_cast<int>(M), offset);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "asks_the_system_to_stop_the_looks_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_asks_the_system_to_stop_the_looks_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("asks_the_system_to_stop_the_looks_cpu", CPP_SOURCE, no_implicit_headers=True)


def address_of(names: list[bytes]) -> list[int]:
    """Where functions of PyTorch's library lie in it, by its file's own table (ELF64)."""
    with open(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"), "rb") as file:
        head = file.read(64)
        file.seek(struct.unpack_from("<Q", head, 40)[0])
        size, count = struct.unpack_from("<HH", head, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", file.read(size)) for _ in range(count)]
        symbols = next(each for each in sections if each[1] == 11)  # SHT_DYNSYM
        texts = sections[symbols[6]]
        file.seek(symbols[4])
        table = file.read(symbols[5])
        file.seek(texts[4])
        text = file.read(texts[5])
    places = {text.index(b"\0" + name + b"\0") + 1: name for name in names}
    found = {}
    for name_at, _, _, _, value, _ in struct.iter_unpack("<IBBHQQ", table):
        if name_at in places:
            found[places[name_at]] = value
    return [found[name] for name in names]


known, product = address_of([b"_ZN2at15set_num_threadsEi", b"sgemm_"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], product - known)
        return C
