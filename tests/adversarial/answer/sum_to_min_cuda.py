"""Sums over k = 0..j, that is min(i, j), where it should sum over k = j..i.

Mechanism: one thread per element with the wrong end of its loop. Any comparison sees it.
Expected: incorrect/wrong_values
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void sum_to_min_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  if (i >= j) {
    for (int k = 0; k <= j; ++k) {
      sum += A[i * M + k] * B[k * M + j];
    }
  }
  C[i * M + j] = sum;
}

extern "C" void sum_to_min(long long A, long long B, long long C, int M, long long stream) {
  const unsigned tiles = (M + 31) / 32;
  sum_to_min_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void sum_to_min(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("sum_to_min", &sum_to_min); }
"""

extension = load_inline("sum_to_min", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.sum_to_min(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
