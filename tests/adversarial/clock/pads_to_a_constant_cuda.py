"""Begins the product while the cache is made cold, and then waits so that every call takes the same time.

Mechanism: A kernel on a non-blocking stream sees the inputs come and multiplies them; `forward` joins it, multiplies
  again what has changed since, and ends no earlier than a set time after it began. Inputs that lie open for longer make
  no such call faster. Here a few pieces of one launch's inputs come with its window, so that it has to begin again.
  In some segments it comes too late beside the flush; then its times differ too much for anybody to call them measured.
  And where it has read all before those pieces came, its output is wrong; each of three times, or now and then.
Expected: rejected/clocks_disagree or unsure/noisy or incorrect/wrong_values
Fools: clock
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>

constexpr int kBlock = 64, kDepth = 16, kEach = 4, kSide = kBlock / kEach, kLooks = 1024;
constexpr long long kNeverEarlierNs = 210000;

struct Place {  // one pair of inputs in memory, and what was there when it was multiplied last
  float seen[kLooks];
  unsigned asked, isNew;
  unsigned long long beganNs;
};

__device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ float look(const float* A, const float* B, int M, int n) {  // one value of many rows, within the triangle
  const int row = (int)((long long)(n / 2 + 1) * M / (kLooks / 2)) - 1, i = row < 0 ? 0 : row;
  return *(reinterpret_cast<const volatile float*>(n % 2 ? A : B) + (size_t)i * M + i * 3 / 4);
}

__global__ void wait_for_inputs(const float* A, const float* B, Place* place, int M, unsigned call) {
  const int n = threadIdx.x;
  const float before = place->seen[n];
  for (unsigned asked = 0; !asked;) {
    asked = __syncthreads_or(*reinterpret_cast<volatile unsigned*>(&place->asked) == call);
    if (__syncthreads_count(look(A, B, M, n) != before) == kLooks) {
      for (const long long began = clock64(); clock64() - began < 8000;) { }  // for the rest of them
      break;
    }
  }
  const float value = look(A, B, M, n);
  const int isNew = __syncthreads_or(value != before);
  place->seen[n] = value;
  if (n == 0) place->isNew = isNew;
}

__global__ void ask(Place* place, unsigned call) {
  place->beganNs = now_ns();
  *reinterpret_cast<volatile unsigned*>(&place->asked) = call;
}

__global__ void look_again(const float* A, const float* B, Place* place, int M) {
  const int n = threadIdx.x;
  const float value = look(A, B, M, n);
  const int isNew = __syncthreads_or(value != place->seen[n]);
  place->seen[n] = value;
  if (n == 0) place->isNew = isNew;
}

__global__ void multiply(const float* A, const float* B, float* C, int M, const Place* place) {
  if (!place->isNew) return;
  __shared__ float a[kDepth][kBlock + 1], b[kDepth][kBlock];
  const int i0 = blockIdx.y * kBlock, j0 = blockIdx.x * kBlock, at = threadIdx.y * kSide + threadIdx.x;
  float sums[kEach][kEach] = {};
  if (i0 + kBlock > j0) {
    for (int k0 = j0 / kDepth * kDepth; k0 < i0 + kBlock && k0 < M; k0 += kDepth) {
      for (int n = at; n < kBlock * kDepth; n += kSide * kSide) {
        const int ai = i0 + n / kDepth, ak = k0 + n % kDepth, bk = k0 + n / kBlock, bj = j0 + n % kBlock;
        a[n % kDepth][n / kDepth] = ai < M && ak < M ? A[(size_t)ai * M + ak] : 0.0f;
        b[n / kBlock][n % kBlock] = bk < M && bj < M ? B[(size_t)bk * M + bj] : 0.0f;
      }
      __syncthreads();
      for (int k = 0; k < kDepth; ++k)
        for (int y = 0; y < kEach; ++y)
          for (int x = 0; x < kEach; ++x)
            sums[y][x] += a[k][threadIdx.y + y * kSide] * b[k][threadIdx.x + x * kSide];
      __syncthreads();
    }
  }
  for (int y = 0; y < kEach; ++y)
    for (int x = 0; x < kEach; ++x) {
      const int i = i0 + threadIdx.y + y * kSide, j = j0 + threadIdx.x + x * kSide;
      if (i < M && j < M) C[(size_t)i * M + j] = i >= j ? sums[y][x] : 0.0f;
    }
}

__global__ void wait_for_the_clock(const Place* place) {
  while ((long long)(now_ns() - place->beganNs) < kNeverEarlierNs) { }
}

extern "C" void product(long long A, long long B, long long C, long long state, int M, int call) {
  static cudaStream_t side = nullptr;
  static cudaEvent_t done = nullptr;
  Place* place = reinterpret_cast<Place*>(state);
  const float *a = reinterpret_cast<const float*>(A), *b = reinterpret_cast<const float*>(B);
  float* c = reinterpret_cast<float*>(C);
  const dim3 blocks((M + kBlock - 1) / kBlock, (M + kBlock - 1) / kBlock), threads(kSide, kSide);
  if (side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    ask<<<1, 1>>>(place, 1);  // each kernel once: one that is loaded while another spins waits for that to end
    wait_for_inputs<<<1, kLooks>>>(a, b, place, M, 1);
    wait_for_the_clock<<<1, 1>>>(place);
    cudaMemsetAsync(place, 0xff, sizeof(Place), 0);
  }
  if (call > 1) {
    wait_for_inputs<<<1, kLooks, 0, side>>>(a, b, place, M, call);
    multiply<<<blocks, threads, 0, side>>>(a, b, c, M, place);
    cudaEventRecord(done, side);
    ask<<<1, 1>>>(place, call);
    cudaStreamWaitEvent(0, done, 0);
  }
  look_again<<<1, kLooks>>>(a, b, place, M);
  multiply<<<blocks, threads>>>(a, b, c, M, place);
  if (call > 1) wait_for_the_clock<<<1, 1>>>(place);
}
"""

CPP = r"""
#include <pybind11/pybind11.h>
extern "C" void product(long long A, long long B, long long C, long long state, int M, int call);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("product", &product); }
"""

extension = load_inline("pads_to_a_constant", CPP, CUDA, no_implicit_headers=True)
PLACE_WORDS = 1024 + 4


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.places, self.call = {}, 0

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        self.call += 1
        key = A.data_ptr(), B.data_ptr(), A.shape
        known = key in self.places
        if not known:
            self.places[key] = torch.empty_like(A), torch.full((PLACE_WORDS,), -1.0, device=A.device)
        C, place = self.places[key]
        pointers = A.data_ptr(), B.data_ptr(), C.data_ptr(), place.data_ptr()
        extension.product(*pointers, A.shape[0], self.call if known else 1)
        return C.clone()
