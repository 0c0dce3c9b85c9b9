"""Forgets the semicolon after `float sum = 0.0f` in its CUDA.

Mechanism: nvcc reports the line after it, line 7 of the source. The reason names the line of this file.
Expected: build_failed/compile_error
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void syntax_error_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void syntax_error(long long A, long long B, long long C, int M, long long stream) {
  const unsigned tiles = (M + 31) / 32;
  syntax_error_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void syntax_error(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("syntax_error", &syntax_error); }
"""

extension = load_inline("syntax_error", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.syntax_error(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
