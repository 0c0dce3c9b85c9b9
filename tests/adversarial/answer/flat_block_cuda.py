"""A kernel written for 2-D blocks is launched with a 1-D block of 32: only the first M/32 rows are computed.

Mechanism: blockDim.y is 1, and the rows below keep the zeros of the allocation. Any comparison of
  whole outputs sees it.
Expected: incorrect/wrong_values
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void flat_block_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void flat_block(long long A, long long B, long long C, int M, long long stream) {
  const unsigned tiles = (M + 31) / 32;
  flat_block_kernel<<<dim3(tiles, tiles), dim3(32), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void flat_block(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("flat_block", &flat_block); }
"""

extension = load_inline("flat_block", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.zeros_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.flat_block(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
