"""Compiles its kernel with CuPy, as a RawKernel, at its first call.

Mechanism: no extension is built; NVRTC compiles a text of the candidate's, and CuPy keeps it in the user's home.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
Needs: cupy
"""

import cupy
import numpy as np
import torch
import torch.nn as nn

SOURCE = """
extern "C" __global__ void tril_by_cupy(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}
"""

kernel = cupy.RawKernel(SOURCE, "tril_by_cupy")


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        M = A.shape[0]
        tiles = (M + 15) // 16
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            kernel((tiles, tiles), (16, 16), (*map(cupy.asarray, (A, B, C)), np.int32(M)))
        return C
