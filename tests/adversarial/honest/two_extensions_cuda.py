"""Builds two extensions in one file: one for the lower triangle, one for the zeros above it.

Mechanism: both are built once, under keys of their own, and both kernels are the candidate's.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

LOWER_SOURCE = """
__global__ void lower_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j > i) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void lower(long long A, long long B, long long C, int M, long long stream) {
  const dim3 grid((M + 15) / 16, (M + 15) / 16);
  lower_kernel<<<grid, dim3(16, 16), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

ZEROS_SOURCE = """
__global__ void zeros_kernel(float* C, int M) {
  for (int j = blockIdx.x + 1 + threadIdx.x; j < M; j += blockDim.x) C[blockIdx.x * M + j] = 0.0f;
}

extern "C" void zeros(long long C, int M, long long stream) {
  zeros_kernel<<<M, 256, 0, reinterpret_cast<cudaStream_t>(stream)>>>(reinterpret_cast<float*>(C), M);
}
"""

BINDING = """
#include <pybind11/pybind11.h>
extern "C" void %s(%s);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &%s); }
"""


def built(name: str, arguments: str, source: str):
    return load_inline(f"{name}_part", BINDING % (name, arguments, name), source, no_implicit_headers=True)


lower = built("lower", "long long A, long long B, long long C, int M, long long stream", LOWER_SOURCE)
zeros = built("zeros", "long long C, int M, long long stream", ZEROS_SOURCE)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        lower.run(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        zeros.run(C.data_ptr(), A.shape[0], stream)
        return C
