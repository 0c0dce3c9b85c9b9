"""Shares its rows out to three streams, each of which waits for the inputs, and the current one for all of them.

Mechanism: an event joins each stream before forward returns, so all that they do lies within the events.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
__global__ void rows_kernel(const float* A, const float* B, float* C, int M, int first, int step) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x, i = first + step * (blockIdx.y * blockDim.y + threadIdx.y);
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = j; k <= i; ++k) sum += A[i * M + k] * B[k * M + j];
  C[i * M + j] = sum;
}

extern "C" void rows(long long A, long long B, long long C, int M, int first, int step, long long stream) {
  const dim3 grid((M + 15) / 16, (M / step + 16) / 16);
  rows_kernel<<<grid, dim3(16, 16), 0, reinterpret_cast<cudaStream_t>(stream)>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M, first, step);
}
"""

CPP_SOURCE = """
#include <pybind11/pybind11.h>
extern "C" void rows(long long A, long long B, long long C, int M, int first, int step, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("rows", &rows); }
"""

extension = load_inline("several_streams", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = [torch.cuda.Stream() for _ in range(3)]

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M, current = A.shape[0], torch.cuda.current_stream()
        C = torch.empty_like(A)
        for number, stream in enumerate(self.streams):
            stream.wait_stream(current)
            extension.rows(A.data_ptr(), B.data_ptr(), C.data_ptr(), M, number, len(self.streams), stream.cuda_stream)
        for stream in self.streams:
            current.wait_stream(stream)
        return C
