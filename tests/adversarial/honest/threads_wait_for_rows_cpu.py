"""Multiplies in threads of its own, which were begun once and wait for the next call.

Mechanism: what its threads run is its own code, and between calls they wait in the library of threads. The memory of the output
  is filled with zeros by PyTorch, which is nobody's work.
Expected: ok/
Fools: nothing
Device: cpu
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <Python.h>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

// One row of the product of two lower triangular matrices: row i of A times the rows of B up to i.
static void row(const float* A, const float* B, float* C, long long M, long long i) {
  float* out = C + i * M;
  for (long long k = 0; k <= i; ++k) {
    const float a = A[i * M + k];
    const float* b = B + k * M;
    for (long long j = 0; j <= k; ++j) out[j] += a * b[j];
  }
}

struct Pool {
  std::mutex mutex;
  std::condition_variable begin, end;
  std::atomic<long long> next{0};
  const float *A = nullptr, *B = nullptr;
  float* C = nullptr;
  long long M = 0;
  int round = 0, left = 0;

  Pool() {
    for (int i = 0; i < 2; ++i) std::thread([this] { serve(); }).detach();
  }
  void work() {
    for (long long i; (i = next.fetch_add(1)) < M;) row(A, B, C, M, M - 1 - i);
  }
  void serve() {
    int seen = 0;
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex);
      begin.wait(lock, [&] { return round != seen; });
      seen = round;
      lock.unlock();
      work();
      lock.lock();
      if (--left == 0) end.notify_one();
    }
  }
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    next = 0;
    left = 2;
    ++round;
    begin.notify_all();
    end.wait(lock, [&] { return left == 0; });
  }
};

static PyObject* add_product(PyObject*, PyObject* arguments) {
  static Pool* pool = new Pool;
  long long A, B, C;
  if (!PyArg_ParseTuple(arguments, "LLLL", &A, &B, &C, &pool->M)) return nullptr;
  pool->A = reinterpret_cast<float*>(A);
  pool->B = reinterpret_cast<float*>(B);
  pool->C = reinterpret_cast<float*>(C);
  pool->run();
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"add_product", add_product, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "threads_wait_for_rows_cpu", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_threads_wait_for_rows_cpu() { return PyModule_Create(&module); }
"""

extension = load_inline(
    "threads_wait_for_rows_cpu", CPP_SOURCE, extra_cflags=["-O3", "-pthread"], extra_ldflags=["-pthread"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.zeros_like(A)
        extension.add_product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
