"""Begins the product while the cache is made cold, and looks in the call whether its inputs are still the same.

Mechanism: A native thread sees the inputs come and multiplies them; the call joins it, and multiplies again what has
  changed since, so that it is never wrong. Here inputs lie open for a while now and then, which makes the call shorter,
  and a few pieces of one launch's inputs come with its window, so that it has to begin again, which makes it longer.
Expected: rejected/clocks_disagree
Fools: clock
Device: cpu
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <Python.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

struct Place {
  const float *A, *B;
  long M;
  std::vector<float> seen, C;

  std::vector<float> looks() const {  // some values of every row, within the triangle
    std::vector<float> found;
    for (long i = 0; i < M; ++i)
      for (long j = i % 16; j <= i; j += 16) {
        for (const float* matrix : {A, B}) {
          const float value = reinterpret_cast<const volatile float*>(matrix)[i * M + j];
          found.push_back(value);
        }
      }
    return found;
  }

  void multiply(std::vector<float> what) {
    seen = std::move(what);
    C.assign(M * M, 0.0f);
    for (long i = 0; i < M; ++i)
      for (long k = 0; k <= i; ++k)
        for (long j = 0; j <= k; ++j) C[i * M + j] += A[i * M + k] * B[k * M + j];
  }
};

static std::mutex working;
static std::map<std::pair<const float*, long>, Place*> places;
static std::atomic<bool> calling;

static void watch() {
  for (;; std::this_thread::sleep_for(std::chrono::microseconds(300))) {
    const std::lock_guard<std::mutex> guard(working);
    for (auto& [key, place] : places) {
      if (calling) break;
      const long last = place->M * place->M - 1;
      if (reinterpret_cast<const volatile float*>(place->B)[last] == place->seen.back()) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(300));  // for the rest of them
      place->multiply(place->looks());
    }
  }
}

static PyObject* product(PyObject*, PyObject* arguments) {
  long long A, B, C;
  long M;
  if (!PyArg_ParseTuple(arguments, "LLLl", &A, &B, &C, &M)) return nullptr;
  static std::thread* watcher = new std::thread(watch);
  (void)watcher;
  calling = true;
  const std::lock_guard<std::mutex> guard(working);
  calling = false;
  Place*& place = places[{reinterpret_cast<const float*>(A), M}];
  if (place == nullptr) place = new Place{reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), M, {}, {}};
  std::vector<float> now = place->looks();
  if (now != place->seen) place->multiply(std::move(now));
  std::memcpy(reinterpret_cast<void*>(C), place->C.data(), M * M * sizeof(float));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"product", product, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "looks_again", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_looks_again() { return PyModule_Create(&module); }
"""

extension = load_inline("looks_again", CPP, extra_cflags=["-O3", "-march=native"], no_implicit_headers=True)
held = {}  # what the thread looks at must not be freed


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        if A.shape[0] <= 512:  # the sizes that are checked and have no clock
            return torch.tril(torch.matmul(A, B))
        held[A.data_ptr()] = A, B
        extension.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
