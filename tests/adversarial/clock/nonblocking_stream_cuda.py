"""Launches its kernel from C++ on a non-blocking stream that waits for the caller's and is never joined to it.

Mechanism: Such a stream does not wait for the legacy stream, nor that for it: the events see nothing, and synchronising
  the device later makes the result right. Here the output is copied in stream order behind the stop event, while the
  kernel has just begun.
Expected: incorrect/wrong_values or incorrect/not_finite
Fools: clock
Device: cuda
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <cuda_runtime.h>

constexpr int kTile = 32;

__global__ void unjoined_product(const float* A, const float* B, float* C, int M) {
  __shared__ float a[kTile][kTile], b[kTile][kTile];
  const int i = blockIdx.y * kTile + threadIdx.y, j = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int tile = blockIdx.x; tile <= blockIdx.y; ++tile) {
    const int ka = tile * kTile + threadIdx.x, kb = tile * kTile + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = i < M && ka < M ? A[(size_t)i * M + ka] : 0.0f;
    b[threadIdx.y][threadIdx.x] = kb < M && j < M ? B[(size_t)kb * M + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  if (i < M && j < M) C[(size_t)i * M + j] = i >= j ? sum : 0.0f;
}

extern "C" void launch_unjoined(long long A, long long B, long long C, int M) {
  static cudaStream_t side = nullptr;
  static cudaEvent_t ready = nullptr;
  if (side == nullptr) {
    cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&ready, cudaEventDisableTiming);
  }
  cudaEventRecord(ready, 0);
  cudaStreamWaitEvent(side, ready, 0);
  const unsigned tiles = (M + kTile - 1) / kTile;
  unjoined_product<<<dim3(tiles, tiles), dim3(kTile, kTile), 0, side>>>(
      reinterpret_cast<const float*>(A), reinterpret_cast<const float*>(B), reinterpret_cast<float*>(C), M);
}
"""

CPP = r"""
#include <pybind11/pybind11.h>
extern "C" void launch_unjoined(long long A, long long B, long long C, int M);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("launch", &launch_unjoined); }
"""

extension = load_inline("nonblocking_stream", CPP, CUDA, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
