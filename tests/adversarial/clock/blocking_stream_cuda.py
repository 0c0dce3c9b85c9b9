"""Launches its kernel on a blocking stream, which the default stream waits for by itself, and never joins it.

Mechanism: what is queued in the default stream waits for blocking streams; whether an event recorded there does is
  asked here. A stop event that does not wait stands before the work, and the judge's clock sees that.
Expected: rejected/clocks_disagree or rejected/below_floor or incorrect/wrong_values
Fools: clock
Device: cuda
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(const float* A, const float* B, float* C, int M) {
  __shared__ float a[32][33], b[32][33];
  const int i = blockIdx.y * 32 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int tile = blockIdx.x; tile <= blockIdx.y; ++tile) {
    const int ka = tile * 32 + threadIdx.x, kb = tile * 32 + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = i < M && ka < M ? A[(size_t)i * M + ka] : 0.0f;
    b[threadIdx.y][threadIdx.x] = kb < M && j < M ? B[(size_t)kb * M + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 32; ++k) sum = fmaf(a[threadIdx.y][k], b[k][threadIdx.x], sum);
    __syncthreads();
  }
  if (i < M && j < M) C[(size_t)i * M + j] = i >= j ? sum : 0.0f;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  static cudaStream_t side = nullptr;
  if (side == nullptr) cudaStreamCreate(&side);
  const unsigned tiles = (M + 31) / 32;
  tril_matmul_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, side>>>((const float*)A, (const float*)B, (float*)C, M);
}
"""

extension = load_inline(
    name="blocking_stream",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" void launch(long long, long long, long long, int);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
