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
#include <torch/extension.h>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

// One row of the product of two lower triangular matrices: row i of A times the rows of B up to i.
static void row(const float* A, const float* B, float* C, int64_t M, int64_t i) {
  float* out = C + i * M;
  for (int64_t k = 0; k <= i; ++k) {
    const float a = A[i * M + k];
    const float* b = B + k * M;
    for (int64_t j = 0; j <= k; ++j) out[j] += a * b[j];
  }
}

struct Pool {
  std::mutex mutex;
  std::condition_variable begin, end;
  std::atomic<int64_t> next{0};
  const float *A = nullptr, *B = nullptr;
  float* C = nullptr;
  int64_t M = 0;
  int round = 0, left = 0;

  Pool() {
    for (int i = 0; i < 2; ++i) std::thread([this] { serve(); }).detach();
  }
  void work() {
    for (int64_t i; (i = next.fetch_add(1)) < M;) row(A, B, C, M, M - 1 - i);
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

torch::Tensor tril_matmul(torch::Tensor A, torch::Tensor B) {
  static Pool* pool = new Pool;
  auto C = torch::zeros_like(A);
  pool->A = A.data_ptr<float>();
  pool->B = B.data_ptr<float>();
  pool->C = C.data_ptr<float>();
  pool->M = A.size(0);
  pool->run();
  return C;
}
"""

extension = load_inline("threads_wait_for_rows_cpu", CPP_SOURCE, functions=["tril_matmul"], extra_cflags=["-O3", "-pthread"], extra_ldflags=["-pthread"])


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul(A, B)
