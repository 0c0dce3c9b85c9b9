"""Begins half of its products, drawn by chance, while the cache is made cold, and the others when it is called.

Mechanism: A kernel on a non-blocking stream sees the inputs come and multiplies them; `forward` joins it, and multiplies
  again where something has changed since. One launch whose last inputs come with its window is slower only if it was
  begun before, so no row of such launches is slower each time. Here findings are counted beside that.
Expected: rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: cuda
"""

import random

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>

constexpr int kSide = 16, kLooks = 1024;

struct Seen {  // one pair of inputs in memory: some of the values it had when it was multiplied last
  float values[kLooks];
  int differ;
  unsigned called;
};

__device__ float value_of(const float* A, const float* B, int M, int n) {  // of every row one, in the lower triangle
  const int row = (int)((long long)(n + 1) * M / kLooks) - 1, i = row < 0 ? 0 : row;
  const volatile float* matrix = n % 2 ? A : B;
  return matrix[(size_t)i * M + i / 2];
}

__device__ void remember(const float* A, const float* B, Seen* seen, int M) {
  const int n = threadIdx.x;
  const float value = value_of(A, B, M, n);
  const int differ = __syncthreads_or(value != seen->values[n]);
  seen->values[n] = value;
  if (n == 0) seen->differ = differ;
}

__global__ void watch(const float* A, const float* B, Seen* seen, int M, unsigned call) {
  const int n = threadIdx.x;
  while (!__syncthreads_or(*(volatile unsigned*)&seen->called == call)) {
    if (__syncthreads_count(value_of(A, B, M, n) != seen->values[n]) < kLooks) continue;
    for (const long long began = clock64(); clock64() - began < 8000;) { }  // for the rest of them
    break;
  }
  remember(A, B, seen, M);
}

__global__ void say_called(Seen* seen, unsigned call) { *(volatile unsigned*)&seen->called = call; }

__global__ void look_again(const float* A, const float* B, Seen* seen, int M) { remember(A, B, seen, M); }

__global__ void multiply(const float* A, const float* B, float* C, int M, const Seen* seen) {
  if (!seen->differ) return;
  __shared__ float a[kSide][kSide], b[kSide][kSide];
  const int i = blockIdx.y * kSide + threadIdx.y, j = blockIdx.x * kSide + threadIdx.x;
  float sum = 0.0f;
  if (blockIdx.y >= blockIdx.x) {
    for (int k0 = blockIdx.x * kSide; k0 <= blockIdx.y * kSide; k0 += kSide) {
      const int ak = k0 + threadIdx.x, bk = k0 + threadIdx.y;
      a[threadIdx.y][threadIdx.x] = i < M && ak < M ? A[(size_t)i * M + ak] : 0.0f;
      b[threadIdx.y][threadIdx.x] = bk < M && j < M ? B[(size_t)bk * M + j] : 0.0f;
      __syncthreads();
      for (int k = 0; k < kSide; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
      __syncthreads();
    }
  }
  if (i < M && j < M) C[(size_t)i * M + j] = i >= j ? sum : 0.0f;
}

extern "C" void product(long long A, long long B, long long C, long long memory, int M, int call, int early) {
  static cudaStream_t side = nullptr;
  static cudaEvent_t done = nullptr;
  Seen* seen = reinterpret_cast<Seen*>(memory);
  const float *a = reinterpret_cast<const float*>(A), *b = reinterpret_cast<const float*>(B);
  float* c = reinterpret_cast<float*>(C);
  const dim3 blocks((M + kSide - 1) / kSide, (M + kSide - 1) / kSide), threads(kSide, kSide);
  if (side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    say_called<<<1, 1>>>(seen, 1);  // each kernel once: one that is loaded while another spins waits for that to end
    watch<<<1, kLooks>>>(a, b, seen, M, 1);
    cudaMemsetAsync(seen, 0xff, sizeof(Seen), 0);
  }
  if (early) {
    watch<<<1, kLooks, 0, side>>>(a, b, seen, M, call);
    multiply<<<blocks, threads, 0, side>>>(a, b, c, M, seen);
    cudaEventRecord(done, side);
    say_called<<<1, 1>>>(seen, call);
    cudaStreamWaitEvent(0, done, 0);
  }
  look_again<<<1, kLooks>>>(a, b, seen, M);
  multiply<<<blocks, threads>>>(a, b, c, M, seen);
}
"""

CPP = r"""
#include <pybind11/pybind11.h>
extern "C" void product(long long A, long long B, long long C, long long memory, int M, int call, int early);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("product", &product); }
"""

extension = load_inline("begins_now_and_then", CPP, CUDA, no_implicit_headers=True)
WORDS = 1024 + 2


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.places, self.calls = {}, 0

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        key = A.data_ptr(), B.data_ptr(), A.shape
        early = key in self.places and random.random() < 0.5
        if key not in self.places:
            self.places[key] = torch.empty_like(A), torch.full((WORDS,), -1.0, device=A.device)
        C, memory = self.places[key]
        pointers = A.data_ptr(), B.data_ptr(), C.data_ptr(), memory.data_ptr()
        extension.product(*pointers, A.shape[0], self.calls + 1, early)
        return C.clone()
