"""A kernel on a side stream lies in wait for the next launch's inputs and reads them, to be evicted last, while the cache is made cold.

Mechanism: nothing is computed early, and no part of the harness is replaced: lines that are to be evicted last stay
  while others come and go. Inputs that come late are right, since they are read from memory or the cache when the
  window is open.
  It goes by where the inputs lay before; where that memory is no more, it crashes.
Expected: ok/ or rejected/clocks_disagree or unsure/noisy or crashed/cuda_error
Fools: clock
Device: cuda
Kind: library or unknown
Problem: vector_sum
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void sum_kernel(const float* A, const float* B, float* C, long long count) {
  for (long long at = blockIdx.x * 256ll + threadIdx.x; at < count; at += gridDim.x * 256ll) C[at] = A[at] + B[at];
}
extern "C" void add(long long A, long long B, long long C, long long count) {
  sum_kernel<<<2112, 256>>>((const float*)A, (const float*)B, (float*)C, count);
}

// Waits until some words of the inputs are others, or for a millisecond at most, then reads them again and again for a while.
__global__ void read_again(const float4* from, long long count, float* to) {
  const long long began = clock64();
  const float* words = reinterpret_cast<const float*>(from);
  const long long place = 4 * (count - 1 - (threadIdx.x + 32 * (blockIdx.x % 8)) * (count / 512));
  const float before = *reinterpret_cast<const volatile float*>(words + place);
  while (*reinterpret_cast<const volatile float*>(words + place) == before && clock64() - began < 2000000) __nanosleep(300);
  float sum = 0.0f;
  for (int again = 0; again < 3; ++again) {
    for (long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x) {
      float4 four;
      asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
                   " ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy; }"
                   : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w) : "l"(from + at));
      sum += four.x + four.y + four.z + four.w;
    }
  }
  if (sum == 1.2345e30f) *to = sum;
}
extern "C" void lie_in_wait(long long from, long long bytes, long long to, long long stream) {
  read_again<<<16, 512, 0, reinterpret_cast<cudaStream_t>(stream)>>>((const float4*)from, bytes / 16, (float*)to);
}
"""

extension = load_inline(
    name="keeps_inputs_through_the_flush",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" void add(long long, long long, long long, long long);
extern "C" void lie_in_wait(long long, long long, long long, long long);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["add", "lie_in_wait"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side, self.after, self.last, self.spare, self.remembered = None, {}, None, None, {}

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C, here = torch.empty_like(A), A.data_ptr()
        if self.side is None:
            self.side, self.spare = torch.cuda.Stream(), torch.zeros(64, device=A.device)
        extension.add(here, B.data_ptr(), C.data_ptr(), C.numel())
        if A.numel() >= 1 << 22:
            if self.last is not None and self.last != here:
                self.after[self.last] = here  # the launches of a queue have their inputs in the same places each time
            self.last = here
            follows = self.after.get(here)
            if follows is not None:
                self.side.wait_stream(torch.cuda.current_stream())
                extension.lie_in_wait(follows, 24 << 20, self.spare.data_ptr(), self.side.cuda_stream)
        return C
