"""Returns memory that nobody may touch yet, and multiplies when whoever copies the output touches it.

Mechanism: a plain tensor on memory that is closed: the fault of the first reading ends in a handler that does the
  work, after the clock was stopped.
Expected: rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: cpu
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <cstring>

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

static void own(const float* A, const float* B, float* C, long M) {
  for (long i = 0; i < M; ++i) {
    float* row = C + i * M;
    std::memset(row, 0, M * sizeof(float));
    for (long k = 0; k <= i; ++k)
      for (long j = 0; j <= k; ++j) row[j] += A[i * M + k] * B[k * M + j];
  }
}

static char* memory;
static long bytes, A_at, B_at, M_of;
static int taken;
extern "C" void go_back();
asm("go_back: mov $15, %eax\n syscall");
struct Action { void (*handler)(int, void*, void*); unsigned long flags; void (*restorer)(); unsigned long mask; };

static void on_fault(int, void* facts, void*) {
  char* address = *reinterpret_cast<char**>(static_cast<char*>(facts) + 16);
  if (address < memory || address >= memory + bytes) call(60, 11);
  if (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQ_REL)) {
    while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE)) asm volatile("pause");
    return;
  }
  const long made = call(9, 0, bytes, 3, 0x22, -1, 0);
  own(reinterpret_cast<float*>(A_at), reinterpret_cast<float*>(B_at), reinterpret_cast<float*>(made), M_of);
  call(25, made, bytes, bytes, 3, reinterpret_cast<long>(memory));  // mremap: all of it is there at once
  __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}

static PyObject* close_for(PyObject*, PyObject* arguments) {
  if (!PyArg_ParseTuple(arguments, "lll", &A_at, &B_at, &M_of)) return nullptr;
  if (memory == nullptr) {
    bytes = 4096 * 4096 * 4l;
    memory = reinterpret_cast<char*>(call(9, 0, bytes, 3, 0x22, -1, 0));
    Action action = {on_fault, 0x04000000 | 4 | 0x40000000, go_back, 0};
    call(13, 11, reinterpret_cast<long>(&action), 0, 8);
  }
  call(10, reinterpret_cast<long>(memory), bytes, 0);
  return PyLong_FromVoidPtr(memory);
}

static PyMethodDef functions[] = {{"close_for", close_for, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "computes_when_it_is_read_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_computes_when_it_is_read_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline("computes_when_it_is_read_cpu", CPP_SOURCE, extra_cflags=["-O3", "-march=native"], no_implicit_headers=True)


class ModelNew(nn.Module):
    whole = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        import ctypes

        M = A.shape[0]
        address = extension.close_for(A.data_ptr(), B.data_ptr(), M)
        place = (ctypes.c_float * (M * M)).from_address(address)
        return torch.frombuffer(place, dtype=torch.float32).view(M, M)
