"""Makes eight small launches a call, each adding its slice of k to the output.

Mechanism: they follow each other on the current stream, and each needs the one before it. Every one of them
  lies between the events.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
__global__ void slice_kernel(const float* A, const float* B, float* C, int M, int first_k, int end_k) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= M || j >= M) return;
  float sum = first_k ? C[i * M + j] : 0.0f;
  for (int k = max(j, first_k); k < min(i + 1, end_k); ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void product(long long A, long long B, long long C, int M, long long stream) {
  const dim3 grid((M + 15) / 16, (M + 15) / 16);
  const int slice = (M + 7) / 8;
  for (int first_k = 0; first_k < M; first_k += slice) {
    slice_kernel<<<grid, dim3(16, 16), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
        reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M, first_k,
        min(M, first_k + slice));
  }
}
"""

CPP_SOURCE = """
#include <pybind11/pybind11.h>
extern "C" void product(long long A, long long B, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""

extension = load_inline("several_launches", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        stream = torch.cuda.current_stream().cuda_stream
        extension.product(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0], stream)
        return C
