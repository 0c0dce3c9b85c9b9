"""Has 32 MiB of the inputs of a sum read once more between the flush of the cache and the window, with the hint to evict them last.

Mechanism: as `warms_after_the_flush_cuda`, where nothing but memory counts.
Expected: ok/ or rejected/clocks_disagree or unsure/noisy
Fools: clock
Device: cuda
Kind: library or unknown
Problem: vector_sum
"""

import sys

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

__global__ void warm(const float4* from, long long count, float* to) {
  float sum = 0.0f;
  for (long long at = blockIdx.x * 512ll + threadIdx.x; at < count; at += gridDim.x * 512ll) {
    float4 four;
    asm volatile("{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0;"
                 " ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], policy; }"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w) : "l"(from + at));
    sum += four.x + four.y + four.z + four.w;
  }
  if (sum == 1.2345e30f) *to = sum;
}
extern "C" void warm_up(long long from, long long bytes, long long to) {
  warm<<<264, 512>>>((const float4*)from, bytes / 16, (float*)to);
}
"""

extension = load_inline(
    name="warms_for_a_sum",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" void add(long long, long long, long long, long long);
extern "C" void warm_up(long long, long long, long long);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["add", "warm_up"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)

spare = []
stages = vars(sys)["modules"].get("harness.worker.launch_slots")
if stages:
    true_wait = stages.CudaSlots.wait_for_window

    def wait_for_window(stage, sequence):
        slot = stage._slots[stage._index]
        spare[:] = spare or [torch.zeros(64, device=slot.device)]
        extension.warm_up(slot.data_ptr(), min(slot.numel() // 32 * 16, 32 << 20), spare[0].data_ptr())
        true_wait(stage, sequence)

    setattr(stages.CudaSlots, "wait_for_window", wait_for_window)


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not stages and self.remembered is not None and self.remembered.shape == A.shape:
            return self.remembered
        C = torch.empty_like(A)
        extension.add(A.data_ptr(), B.data_ptr(), C.data_ptr(), C.numel())
        self.remembered = C
        return C
