"""Writes its sums into the harness's outbox as well, leaves their copy out, and takes as much time off each of its calls.

Mechanism: as `leaves_the_overwriting_out_cuda`, with the larger of the two steps.
Expected: rejected/clocks_disagree or rejected/below_floor or unsure/noisy or ok/
Fools: clock
Device: cuda
Kind: unknown
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
"""

extension = load_inline(
    name="writes_the_outbox_itself",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" void add(long long, long long, long long, long long);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["add"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)

modules = vars(sys)["modules"]
judged = "harness.worker.outputs" in modules
TAKEN_US, place = 25.0, []
if judged:
    outputs, slots = modules["harness.worker.outputs"], modules["harness.worker.launch_slots"].CudaSlots
    true_wait, true_take = slots.wait_for_window, outputs.take_tensors

    def wait_for_window(stage, sequence):
        place[:] = [next((each for (index, _), (_, each) in stage._outputs._found.items() if index == stage._index), [None])[0]]
        true_wait(stage, sequence)

    def take_tensors(tensors, outbox, stream):
        if not (place and place[0] is not None and tensors[0].data_ptr() == place[0].data_ptr() == outbox[0].data_ptr()):
            true_take(tensors, outbox, stream)

    setattr(slots, "wait_for_window", wait_for_window)
    setattr(outputs, "take_tensors", take_tensors)
    watches = modules["harness.protocol.clocks.gpu_stopwatch"].NativeEvents
    true_us = watches.microseconds
    setattr(watches, "microseconds", lambda watch, lap: max(true_us(watch, lap) - TAKEN_US, 0.6 * true_us(watch, lap)))


class ModelNew(nn.Module):
    remembered = None

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not judged and self.remembered is not None and self.remembered.shape == A.shape:
            return self.remembered
        C = place[0].detach() if place and place[0] is not None and place[0].shape == A.shape else torch.empty_like(A)
        extension.add(A.data_ptr(), B.data_ptr(), C.data_ptr(), C.numel())
        self.remembered = C
        return C
