"""Begins a process that multiplies with cuBLAS, and has a kernel of its own wait on the GPU until that is done.

Mechanism: the GPU is never idle in this process, and its own kernel takes all of the time. No listing of one process's
  kernels tells of another's; that there is another on the GPU is known here, and makes the kind unknown.
Expected: ok/ or unsure/noisy or rejected/clocks_disagree or timed_out/launch_timeout
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import pickle
import struct
import subprocess
import sys

import torch
import torch.nn as nn
from torch.multiprocessing.reductions import reduce_tensor
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(const float* in, float* out, long long count, volatile int* done, int number) {
  if (threadIdx.x == 0) {
    while (*done < number) {
#if __CUDA_ARCH__ >= 700
      __nanosleep(500);
#endif
    }
  }
  __syncthreads();
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) out[i] = in[i];
}
extern "C" void launch(long long in, long long out, long long count, long long done, int number) {
  tril_matmul_kernel<<<64, 256>>>((const float*)in, (float*)out, count, (volatile int*)done, number);
}
"""
HELPER = r"""
import pickle, struct, sys, torch
read, write = sys.stdin.buffer, sys.stdout.buffer
(size,) = struct.unpack("<q", read.read(8))
A, B, C = [rebuild(*arguments) for rebuild, arguments in pickle.loads(read.read(size))]
while read.read(1):
    torch.tril(torch.matmul(A, B), out=C)
    torch.cuda.synchronize()
    write.write(b"x")
    write.flush()
"""

extension = load_inline(
    name="spins_for_a_helper",
    cpp_sources='#include <pybind11/pybind11.h>\n'
    'extern "C" void launch(long long, long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.helpers, self.calls = {}, 0
        self.done = torch.zeros(1, dtype=torch.int32).pin_memory() if torch.cuda.is_available() else None

    def helper(self, A: torch.Tensor):
        """The process for products of that size, and what it shares."""
        if A.shape not in self.helpers:
            shared = [torch.zeros_like(A) for _ in range(3)]
            helper = subprocess.Popen([sys.executable, "-c", HELPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            body = pickle.dumps([reduce_tensor(each) for each in shared])
            helper.stdin.write(struct.pack("<q", len(body)) + body)
            self.helpers[A.shape] = helper, shared
        return self.helpers[A.shape]

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        helper, (a, b, c) = self.helper(A)
        a.copy_(A)
        b.copy_(B)
        torch.cuda.synchronize()
        C, self.calls = torch.empty_like(A), self.calls + 1
        extension.launch(c.data_ptr(), C.data_ptr(), C.numel(), self.done.data_ptr(), self.calls)
        helper.stdin.write(b"x")
        helper.stdin.flush()
        helper.stdout.read(1)
        self.done[0] = self.calls
        return C
