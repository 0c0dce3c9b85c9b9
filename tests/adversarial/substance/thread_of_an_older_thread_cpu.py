"""Has a thread that was there before it begin another one, from a handler of signals, and multiplies by PyTorch's BLAS there.

Mechanism: who looks at all threads that a process begins looks at those whose parent he looks at. The threads that NumPy began
  before anybody looked are looked at alone, and what they begin is not. Here each thread of the process that nobody looks at
  makes the kind unknown.
Expected: ok/
Fools: substance
Device: cpu
Kind: library or mixed or unknown
"""

import os
import struct

import numpy  # noqa: F401  its library of products has a thread for each core but one
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <atomic>
#include <cstring>
#include <pthread.h>

using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                      const int*, const float*, const int*, const float*, float*, const int*);
namespace at { void set_num_threads(int); }

struct Job { long long A, B, C, M, product; };
static Job job;
static std::atomic<int> wanted{0}, done{0}, begun{0};

static long call(long number, long a, long b = 0, long c = 0, long d = 0) {
  long result;
  register long fourth asm("r10") = d;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}

static void* work(void*) {
  begun = 2;
  for (;;) {
    while (wanted.load() == done.load()) call(24, 0);  // sched_yield
    const int m = static_cast<int>(job.M);
    const float one = 1.0f, zero = 0.0f;
    reinterpret_cast<Gemm>(job.product)("N", "N", &m, &m, &m, &one, reinterpret_cast<float*>(job.B), &m,
                                        reinterpret_cast<float*>(job.A), &m, &zero, reinterpret_cast<float*>(job.C), &m);
    done.store(wanted.load());
  }
}

static void on_signal(int) {
  int none = 0;
  if (!begun.compare_exchange_strong(none, 1)) return;
  pthread_t thread;
  pthread_create(&thread, nullptr, work, nullptr);
}

extern "C" void go_back();
asm("go_back: mov $15, %eax\n syscall");

struct Action { void (*handler)(int); unsigned long flags; void (*restorer)(); unsigned long mask; };

// Whether some thread between `first` and `last` of this process took the signal and has begun another.
static PyObject* begin(PyObject*, PyObject* arguments) {
  long process, first, last;
  if (!PyArg_ParseTuple(arguments, "lll", &process, &first, &last)) return nullptr;
  Action action = {on_signal, 0x04000000 | 0x10000000, go_back, 0};
  call(13, 12, reinterpret_cast<long>(&action), 0, 8);  // rt_sigaction of SIGUSR2
  for (long thread = first; thread <= last && begun == 0; ++thread) {
    if (call(234, process, thread, 12) != 0) continue;  // tgkill
    for (int again = 0; again < 200000 && begun != 2; ++again) call(24, 0);
  }
  return PyBool_FromLong(begun == 2);
}

static PyObject* tril_matmul(PyObject*, PyObject* arguments) {
  long long offset;
  if (!PyArg_ParseTuple(arguments, "LLLLL", &job.A, &job.B, &job.C, &job.M, &offset)) return nullptr;
  job.product = reinterpret_cast<long long>(static_cast<void (*)(int)>(&at::set_num_threads)) + offset;
  const int number = done.load() + 1;
  wanted.store(number);
  while (done.load() != number) asm volatile("pause");
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"tril_matmul", tril_matmul, METH_VARARGS, nullptr}, {"begin", begin, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "thread_of_an_older_thread_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_thread_of_an_older_thread_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("thread_of_an_older_thread_cpu", CPP_SOURCE, no_implicit_headers=True)


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
    def __init__(self):
        super().__init__()
        pid = os.getpid()
        self.begun = extension.begin(pid, pid + 1, pid + 40)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.begun:
            raise RuntimeError("there was no thread before it")
        C = torch.empty_like(A)
        extension.tril_matmul(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], product - known)
        return C
