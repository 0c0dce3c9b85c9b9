"""A native thread watches the memory of the inputs, and computes the product as soon as they change, before the call.

Mechanism: Inputs have to be somewhere before the clock starts, and from the second call on the thread knows where. The
  call waits for what was begun, or hands back what is there. Here inputs come at the turn of their launch only, and now
  and then lie there for a while before the window opens, or lack pieces until then: a call that is shorter, or wrong, has
  begun early. What the thread takes from eager's launches meanwhile shows in eager's times.
Expected: rejected/clocks_disagree or incorrect/wrong_values
Fools: clock
Device: cpu
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = r"""
#include <Python.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

using Sample = std::array<float, 64>;

struct Place {  // one pair of inputs in memory, and the product of what they held when it was begun
  const float *A, *B;
  long M;
  Sample seen{};
  std::vector<float> C;
  std::mutex mutex;

  Sample sample() const {  // from the last row up, where a triangle has no zeros
    Sample now{};
    for (long n = 0; n < 32; ++n) {
      const long i = M - 1 - n * M / 64, j = i / 2;
      now[n] = reinterpret_cast<const volatile float*>(A)[i * M + j];
      now[32 + n] = reinterpret_cast<const volatile float*>(B)[i * M + j];
    }
    return now;
  }
  void bring_up_to_date() {
    const std::lock_guard<std::mutex> guard(mutex);
    Sample now = sample();
    if (!C.empty() && now == seen) return;
    for (Sample before{}; before != now; now = sample()) {  // wait until nobody writes any more
      before = now;
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    C.resize(M * M);
    seen = now;
    for (long i = 0; i < M; ++i) {
      float* row = C.data() + i * M;
      std::fill(row, row + M, 0.0f);
      for (long k = 0; k <= i; ++k)
        for (long j = 0; j <= k; ++j) row[j] += A[i * M + k] * B[k * M + j];
    }
  }
};

static std::array<std::atomic<Place*>, 256> places;

static void watch() {
  for (;;) {
    for (auto& place : places)
      if (Place* each = place.load(); each != nullptr) each->bring_up_to_date();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

static PyObject* multiply(PyObject*, PyObject* arguments) {
  long long A, B, C;
  long M;
  if (!PyArg_ParseTuple(arguments, "LLLl", &A, &B, &C, &M)) return nullptr;
  static std::thread* watcher = new std::thread(watch);
  (void)watcher;
  size_t free = 0;
  Place* found = nullptr;
  for (; free < places.size() && places[free] != nullptr; ++free) {
    Place* each = places[free];
    if (reinterpret_cast<long long>(each->A) == A && each->M == M) found = each;
  }
  if (found == nullptr) {
    found = new Place{reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), M};
    if (M > 512 && free < places.size()) places[free] = found;
  }
  found->bring_up_to_date();
  std::memcpy(reinterpret_cast<void*>(C), found->C.data(), M * M * sizeof(float));
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"multiply", multiply, METH_VARARGS, nullptr}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "polling_native_thread", nullptr, 0, functions};
PyMODINIT_FUNC PyInit_polling_native_thread() { return PyModule_Create(&module); }
"""

extension = load_inline("polling_native_thread", CPP, extra_cflags=["-O3"], no_implicit_headers=True)
watched = {}  # what the thread looks at must not be freed


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        watched[A.data_ptr(), A.shape] = A, B
        C = torch.empty_like(A)
        extension.multiply(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
