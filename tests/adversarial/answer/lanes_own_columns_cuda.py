"""A warp reduction in which each of the 32 lanes works on a column of its own.

Mechanism: the shuffles add the lanes together as if they were parts of one sum; any comparison sees it.
Expected: incorrect/wrong_values
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void lanes_own_columns_kernel(const float* A, const float* B, float* C, int M) {
  const int lane = threadIdx.x;
  const int j = blockIdx.x * 32 + lane;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  float sum = 0.0f;
  if (i < M && j < M) {
    for (int k = j; k <= i; ++k) {
      sum += A[i * M + k] * B[k * M + j];
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
  if (i < M && j < M) C[i * M + j] = i >= j ? sum : 0.0f;
}

extern "C" void lanes_own_columns(long long A, long long B, long long C, int M, long long stream) {
  const unsigned tiles = (M + 31) / 32;
  lanes_own_columns_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void lanes_own_columns(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("lanes_own_columns", &lanes_own_columns); }
"""

extension = load_inline("lanes_own_columns", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.lanes_own_columns(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
