"""Waits for all of its blocks within one kernel: a cooperative launch, whose grid is what fits on the device at once.

Mechanism: the two halves of each sum lie in a workspace until every block has come to the barrier. One kernel, begun and
  ended within the events.
Expected: ok/
Fools: nothing
Device: cuda
Kind: custom
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = """
#include <cooperative_groups.h>
#include <cuda_runtime.h>

__global__ void halves_kernel(const float* A, const float* B, float* halves, float* C, int M) {
  const int threads = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
  for (int at = first; at < 2 * M * M; at += threads) {
    const int half = at / (M * M), i = at / M % M, j = at % M;
    float sum = 0.0f;
    for (int k = j + half; k <= i; k += 2) sum += A[i * M + k] * B[k * M + j];
    halves[at] = sum;
  }
  cooperative_groups::this_grid().sync();
  for (int at = first; at < M * M; at += threads) C[at] = halves[at] + halves[M * M + at];
}

extern "C" int product(long long A, long long B, long long halves, long long C, int M, long long stream) {
  const int threads = 256;
  int device = 0, multiprocessors = 0, blocks = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, halves_kernel, threads, 0);
  const float *a = reinterpret_cast<const float*>(A), *b = reinterpret_cast<const float*>(B);
  float *sums = reinterpret_cast<float*>(halves), *c = reinterpret_cast<float*>(C);
  void* arguments[] = {&a, &b, &sums, &c, &M};
  return cudaLaunchCooperativeKernel(reinterpret_cast<void*>(halves_kernel), dim3(blocks * multiprocessors), dim3(threads),
                                     arguments, 0, reinterpret_cast<cudaStream_t>(stream));
}
"""

CPP_SOURCE = """
#include <pybind11/pybind11.h>
extern "C" int product(long long A, long long B, long long halves, long long C, int M, long long stream);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("product", &product); }
"""

extension = load_inline("cooperative_grid", CPP_SOURCE, CUDA_SOURCE, no_implicit_headers=True)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        M = A.shape[0]
        C, halves = torch.empty_like(A), A.new_empty(2, M, M)
        stream = torch.cuda.current_stream().cuda_stream
        error = extension.product(A.data_ptr(), B.data_ptr(), halves.data_ptr(), C.data_ptr(), M, stream)
        if error:
            raise RuntimeError(f"the cooperative launch failed with CUDA error {error}")
        return C
