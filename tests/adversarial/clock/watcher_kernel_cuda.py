"""A kernel on a non-blocking stream lies in wait for the inputs to change, and the product starts when they have.

Mechanism: `forward` only raises a flag and waits for the side stream. What comes into the inputs' memory while the
  cache is being flushed is multiplied before the start event; what has not changed since the last call needs no
  product. Here no inputs are readable before their turn, and segments in which they lie open for a while before the
  window show a time that falls. In some segments it comes too late for all launches; one that is looked at then shows
  what the others would take, but not that it is a lie.
Expected: rejected/clocks_disagree or incorrect/wrong_values or unsure/noisy
Fools: clock
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>

constexpr int kTile = 32, kSamples = 256;

struct State {  // of one pair of inputs in memory
  float seen[2 * kSamples];
  unsigned called, changed;
};

__device__ float look(const float* matrix, int M, int n) {  // down the rows, within the triangle
  const int i = (int)((long long)(n + 1) * M / kSamples) - 1, row = i < 0 ? 0 : i;
  return *reinterpret_cast<const volatile float*>(matrix + (size_t)row * M + row / 2);
}

__global__ void lie_in_wait(const float* A, const float* B, State* state, int M, unsigned call) {
  const int n = threadIdx.x;
  unsigned is_called = 0;
  while (!is_called) {
    is_called = __syncthreads_or(*reinterpret_cast<volatile unsigned*>(&state->called) == call);
    const bool is_new = look(A, M, n) != state->seen[n] && look(B, M, n) != state->seen[kSamples + n];
    if (__syncthreads_count(is_new) == kSamples) {
      const long long began = clock64();
      while (clock64() - began < 30000) { }  // until the rest is there as well
      state->seen[n] = look(A, M, n);
      state->seen[kSamples + n] = look(B, M, n);
      if (n == 0) state->changed = 1;
      return;
    }
    __nanosleep(500);
  }
  if (n == 0) state->changed = 0;
}

__global__ void look_again(const float* A, const float* B, State* state, int M) {
  const int n = threadIdx.x;
  const float a = look(A, M, n), b = look(B, M, n);
  const int is_new = __syncthreads_or(a != state->seen[n] || b != state->seen[kSamples + n]);
  state->seen[n] = a;
  state->seen[kSamples + n] = b;
  if (n == 0) state->changed = is_new;
}

__global__ void raise_flag(State* state, unsigned call) { state->called = call; }

__global__ void early_product(const float* A, const float* B, float* C, int M, const State* state) {
  if (!state->changed) return;
  __shared__ float a[kTile][kTile], b[kTile][kTile];
  const int i = blockIdx.y * kTile + threadIdx.y, j = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int tile = blockIdx.x; tile <= blockIdx.y; ++tile) {
    const int ka = tile * kTile + threadIdx.x, kb = tile * kTile + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = i < M && ka < M ? A[(size_t)i * M + ka] : 0.0f;
    b[threadIdx.y][threadIdx.x] = kb < M && j < M ? B[(size_t)kb * M + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  if (i < M && j < M) C[(size_t)i * M + j] = i >= j ? sum : 0.0f;
}

extern "C" void remember_inputs(long long A, long long B, long long state, int M) {
  State* place = reinterpret_cast<State*>(state);
  const float *a = reinterpret_cast<const float*>(A), *b = reinterpret_cast<const float*>(B);
  look_again<<<1, kSamples>>>(a, b, place, M);
  // Loaded now, since a kernel that is loaded while another spins waits for that to end.
  raise_flag<<<1, 1>>>(place, 0);
  early_product<<<1, dim3(kTile, kTile)>>>(a, b, nullptr, 0, place);
}

extern "C" void multiply_early(long long A, long long B, long long C, long long state, int M, int call) {
  static cudaStream_t side = nullptr;
  static cudaEvent_t done = nullptr;
  if (side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  }
  State* place = reinterpret_cast<State*>(state);
  const float *a = reinterpret_cast<const float*>(A), *b = reinterpret_cast<const float*>(B);
  const dim3 tiles((M + kTile - 1) / kTile, (M + kTile - 1) / kTile), tile(kTile, kTile);
  lie_in_wait<<<1, kSamples, 0, side>>>(a, b, place, M, call);
  early_product<<<tiles, tile, 0, side>>>(a, b, reinterpret_cast<float*>(C), M, place);
  cudaEventRecord(done, side);
  raise_flag<<<1, 1>>>(place, call);
  cudaStreamWaitEvent(0, done, 0);
  look_again<<<1, kSamples>>>(a, b, place, M);  // what came later is multiplied now
  early_product<<<tiles, tile>>>(a, b, reinterpret_cast<float*>(C), M, place);
}
"""

CPP = r"""
#include <pybind11/pybind11.h>
extern "C" void remember_inputs(long long A, long long B, long long state, int M);
extern "C" void multiply_early(long long A, long long B, long long C, long long state, int M, int call);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("remember", &remember_inputs);
  module.def("multiply", &multiply_early);
}
"""

extension = load_inline("watcher_kernel", CPP, CUDA, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.places, self.calls = {}, 0

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        key = (A.data_ptr(), B.data_ptr(), A.shape)
        if key not in self.places:
            C, state = torch.tril(torch.matmul(A, B)), torch.zeros(514, device=A.device)
            extension.remember(A.data_ptr(), B.data_ptr(), state.data_ptr(), A.shape[0])
            self.places[key] = C, state
            return C.clone()
        C, state = self.places[key]
        self.calls += 1
        extension.multiply(A.data_ptr(), B.data_ptr(), C.data_ptr(), state.data_ptr(), A.shape[0], self.calls)
        return C.clone()
