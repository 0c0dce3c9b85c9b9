"""Its upper blocks return early and the output comes from `empty`: the upper triangle is never written.

Mechanism: the tensor of ones is freed first, so that the allocator hands its memory back, used. Fresh
  memory would be zero by luck; what was handed back before is overwritten with 0xFF here.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: nothing
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void upper_unwritten_kernel(const float* A, const float* B, float* C, int M) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || i < j) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void upper_unwritten(long long A, long long B, long long C, int M, long long stream) {
  const unsigned tiles = (M + 31) / 32;
  upper_unwritten_kernel<<<dim3(tiles, tiles), dim3(32, 32), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP_SOURCE = r"""
#include <pybind11/pybind11.h>
extern "C" void upper_unwritten(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("upper_unwritten", &upper_unwritten); }
"""

extension = load_inline("upper_unwritten", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        used = torch.ones_like(A)
        del used
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.upper_unwritten(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
