"""Copies NumPy's library of products into memory of no file, moves that over room in its own library's code, and multiplies.

Mechanism: whose code a core was at is told by the file that the system saw come to lie at its address, and it notes
  nothing where memory is moved (mremap). What lies there now is told by the process's own table of memory, and that
  names no file for it. Where code of no file lies, the system must have seen no file's come before.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import ctypes
import glob
import os
import struct

import numpy
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>

asm(".text\n .balign 4096\n own_room: .space 48 << 20\n .balign 4096\n");
extern "C" char own_room[] __attribute__((visibility("hidden")));

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

using Gemm = void (*)(int, int, int, long, long, long, float, const float*, long, const float*, long, float, float*, long);

static PyObject* room(PyObject*, PyObject*) { return PyLong_FromVoidPtr(own_room); }

static PyObject* protect(PyObject*, PyObject* arguments) {
  long address, bytes, how;
  if (!PyArg_ParseTuple(arguments, "lll", &address, &bytes, &how)) return nullptr;
  return PyLong_FromLong(call(10, address, bytes, how));
}

static PyObject* fresh(PyObject*, PyObject* arguments) {
  long bytes;
  if (!PyArg_ParseTuple(arguments, "l", &bytes)) return nullptr;
  return PyLong_FromLong(call(9, 0, bytes, 3, 0x22, -1, 0));
}

static PyObject* move(PyObject*, PyObject* arguments) {
  long from, bytes, to;
  if (!PyArg_ParseTuple(arguments, "lll", &from, &bytes, &to)) return nullptr;
  return PyLong_FromLong(call(25, from, bytes, bytes, 3, to));
}

static PyObject* threads(PyObject*, PyObject* arguments) {
  long address;
  if (!PyArg_ParseTuple(arguments, "l", &address)) return nullptr;
  reinterpret_cast<void (*)(int)>(address)(1);
  Py_RETURN_NONE;
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long A, B, C, M, address;
  if (!PyArg_ParseTuple(arguments, "LLLLL", &A, &B, &C, &M, &address)) return nullptr;
  reinterpret_cast<Gemm>(address)(101, 111, 111, M, M, M, 1.0f, reinterpret_cast<float*>(A), M, reinterpret_cast<float*>(B), M,
                                  0.0f, reinterpret_cast<float*>(C), M);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {"room", room, METH_NOARGS, nullptr},
    {"protect", protect, METH_VARARGS, nullptr}, {"fresh", fresh, METH_VARARGS, nullptr},
    {"move", move, METH_VARARGS, nullptr}, {"threads", threads, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "library_moved_over_its_own_text_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_library_moved_over_its_own_text_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("library_moved_over_its_own_text_cpu", CPP_SOURCE, no_implicit_headers=True)
LIBRARY = glob.glob(os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), "numpy.libs", "*openblas*"))[0]


def places_of(names: list[bytes]) -> list[int]:
    """Where functions of the library lie in it, by its file's own table (ELF64)."""
    with open(LIBRARY, "rb") as file:
        body = file.read()
    begin, = struct.unpack_from("<Q", body, 40)
    size, count = struct.unpack_from("<HH", body, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", body, begin + size * each) for each in range(count)]
    symbols = next(each for each in sections if each[1] == 11)
    texts = sections[symbols[6]]
    text = body[texts[4]:texts[4] + texts[5]]
    places = {text.index(b"\0" + name + b"\0") + 1: name for name in names}
    found = {}
    for name_at, _, _, _, value, _ in struct.iter_unpack("<IBBHQQ", body[symbols[4]:symbols[4] + symbols[5]]):
        if name_at in places:
            found[places[name_at]] = value
    return [found[name] for name in names]


def moved() -> int:
    """Copy the library as it lies in memory; return the address of its product there."""
    numpy.ones((64, 64), numpy.float32) @ numpy.ones((64, 64), numpy.float32)
    with open("/".join(("", "proc", "self", "maps"))) as lines:
        pieces = [line.rstrip().split(maxsplit=5) for line in lines]  # a path may have blanks
    # What belongs to it without a name lies right behind it.
    named = [index for index, each in enumerate(pieces) if each[-1] == LIBRARY]
    last = named[-1] + (len(pieces[named[-1] + 1]) == 5)
    bounds = [(*(int(each, 16) for each in piece[0].split("-")), piece[1]) for piece in pieces[named[0]:last + 1]]
    first, end, room = bounds[0][0], bounds[-1][1], extension.room()
    fresh = extension.fresh(end - first)
    for begin, stop, how in bounds:
        if "r" not in how:
            continue
        ctypes.memmove(fresh + begin - first, begin, stop - begin)
        if "x" not in how:
            words = numpy.frombuffer((ctypes.c_char * (stop - begin)).from_address(fresh + begin - first), dtype=numpy.uint64)
            words[(words >= first) & (words < end)] += numpy.uint64((room - first) % 2**64)
    for begin, stop, how in bounds:
        if "x" in how:
            extension.protect(fresh + begin - first, stop - begin, 5)
    for begin, stop, _ in bounds:
        extension.move(fresh + begin - first, stop - begin, room + begin - first)
    product, threads = places_of([b"scipy_cblas_sgemm64_", b"scipy_openblas_set_num_threads64_"])
    extension.threads(room + threads)
    return room + product


class ModelNew(nn.Module):
    product = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        ModelNew.product = self.product or moved()
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], self.product)
        return C
