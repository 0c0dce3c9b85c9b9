"""Compiles its kernel with NVRTC when it is constructed, through torch.cuda._compile_kernel.

Mechanism: no compiler of the toolkit's runs and no extension is built, so there is no library to find its
  symbols in. The kernel is its own all the same.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom or unknown
"""

import torch
import torch.nn as nn

SOURCE = """
extern "C" __global__ void product_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = torch.cuda._compile_kernel(SOURCE, "product_kernel")

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        tiles = (A.shape[0] + 15) // 16
        self.kernel(grid=(tiles, tiles, 1), block=(16, 16, 1), args=[A, B, C, A.shape[0]])
        return C
