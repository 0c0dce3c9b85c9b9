"""Builds its CUDA extension inside `__init__`, where it is first needed.

Mechanism: the builder constructs the model once, and so builds; the player opens what was built.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
__global__ void product_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void product(long long A, long long B, long long C, int M, long long stream) {
  const dim3 grid((M + 15) / 16, (M + 15) / 16);
  product_kernel<<<grid, dim3(16, 16), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = """
#include <pybind11/pybind11.h>
extern "C" void product(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.extension = load_inline("built_in_init", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        self.extension.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
