"""While a profiler is on, starts two dozen kernels of its own that only wait, each as long as cuBLAS works beside them.

Mechanism: kernels that run at the same time are counted one after the other, and cuBLAS's part becomes small. Here
  what counts is for how long nothing but the candidate's own kernels ran; and where they run for longer than the call takes
  by the events, the clocks disagree.
Expected: ok/ or rejected/clocks_disagree
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <vector>

__global__ void tril_matmul_kernel(unsigned long long nanoseconds) {
  unsigned long long now, first;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(first));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - first < nanoseconds);
}

// Starts on all side streams at once, when the legacy stream has come here.
extern "C" void launch(int count, int microseconds) {
  static std::vector<cudaStream_t> streams;
  static cudaEvent_t here;
  if (streams.empty()) {
    streams.resize(count);
    for (auto& stream : streams) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&here, cudaEventDisableTiming);
  }
  cudaEventRecord(here, cudaStreamLegacy);
  for (auto& stream : streams) {
    cudaStreamWaitEvent(stream, here, 0);
    tril_matmul_kernel<<<1, 1, 0, stream>>>(1000ull * microseconds);
  }
}
"""

extension = load_inline(
    name="spinning_beside",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(int, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.microseconds = 0

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if not self.microseconds and not torch.cuda.is_current_stream_capturing():
            self.microseconds = self.time_of_product(A, B)
        if torch._C._autograd._profiler_enabled():
            extension.launch(24, self.microseconds)
        return torch.tril(torch.matmul(A, B))

    def time_of_product(self, A: torch.Tensor, B: torch.Tensor) -> int:
        for _ in range(3):
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            torch.matmul(A, B)
            stop.record()
            stop.synchronize()
        return int(1000 * start.elapsed_time(stop))
