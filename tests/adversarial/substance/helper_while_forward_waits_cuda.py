"""Begins a process that multiplies with cuBLAS in memory that both have, and waits for it in forward.

Mechanism: in this process nothing of a library's is called, and the only kernel that runs here is its own. Here a call in
  which the GPU stands idle for longer than its kernels run is nobody's, and so is what another of its processes on the GPU does.
Expected: ok/ or unsure/noisy or rejected/clocks_disagree
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
__global__ void tril_matmul_kernel(const float* in, float* out, long long count) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) out[i] = in[i];
}
extern "C" void launch(long long in, long long out, long long count) {
  tril_matmul_kernel<<<512, 256>>>((const float*)in, (float*)out, count);
}
"""
HELPER = r"""
import pickle, struct, sys, torch
read, write = sys.stdin.buffer, sys.stdout.buffer
def tensors():
    (size,) = struct.unpack("<q", read.read(8))
    return [rebuild(*arguments) for rebuild, arguments in pickle.loads(read.read(size))]
A, B, C = tensors()
while read.read(1):
    torch.tril(torch.matmul(A, B), out=C)
    torch.cuda.synchronize()
    write.write(b"x")
    write.flush()
"""

extension = load_inline(
    name="helper_while_forward_waits",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.helpers = {}

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
        helper.stdin.write(b"x")
        helper.stdin.flush()
        helper.stdout.read(1)
        C = torch.empty_like(A)
        extension.launch(c.data_ptr(), C.data_ptr(), C.numel())
        return C
