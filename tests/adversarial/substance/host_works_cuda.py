"""Copies its inputs to the host, multiplies there with the CPU's library, and copies the product back with its own kernel.

Mechanism: copies are nobody's kernels, and the one that is left is its own, so that all of the GPU's time is. Here a call in
  which the GPU waits for the host for longer than its kernels run is nobody's.
Expected: ok/ or unsure/noisy or rejected/clocks_disagree
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(const float* in, float* out, int M) {
  const int i = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < M) out[(size_t)i * M + j] = i < j ? 0.0f : in[(size_t)i * M + j];
}
extern "C" void launch(long long in, long long out, int M) {
  tril_matmul_kernel<<<dim3((M + 255) / 256, M), 256>>>((const float*)in, (float*)out, M);
}
"""

extension = load_inline(
    name="host_works",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        product = torch.matmul(A.cpu(), B.cpu()).to(A.device)
        C = torch.empty_like(A)
        extension.launch(product.data_ptr(), C.data_ptr(), A.shape[0])
        return C
