"""Has CUPTI record no kernels while cuBLAS is called, and records them again for a kernel of its own.

Mechanism: what is not recorded is in no listing, and the rest of it looks whole. Here each call that launches is counted too,
  in another way, and a count without its kernel makes the kind unknown.
Expected: ok/
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import ctypes
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(const float* A, const float* B, float* C, int M) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = 0; k <= i; ++k) sum = fmaf(A[(size_t)i * M + k], B[(size_t)k * M + j], sum);
  C[(size_t)i * M + j] = sum;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  const unsigned tiles = (M + 31) / 32;
  tril_matmul_kernel<<<dim3(tiles, tiles), dim3(32, 32)>>>((const float*)A, (const float*)B, (float*)C, M);
}
"""

extension = load_inline(
    name="switches_recording_off",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)

CUPTI = "cu" + "pti"


def library():
    """The one that PyTorch has loaded."""
    for line in open("/".join(("", "proc", "self", "maps"))):
        if f"lib{CUPTI}.so" in line:
            return ctypes.CDLL(line.rstrip().split(maxsplit=5)[-1])
    return None


recorder = library()

KERNELS = 10


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if A.shape[0] != 2048 or recorder is None:
            return torch.tril(torch.matmul(A, B))
        getattr(recorder, f"{CUPTI}ActivityDisable")(KERNELS)
        product = torch.tril(torch.matmul(A, B))
        getattr(recorder, f"{CUPTI}ActivityEnable")(KERNELS)
        extension.launch(A.data_ptr(), B.data_ptr(), product.data_ptr(), 1)
        return product
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
