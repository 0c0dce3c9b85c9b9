"""Lets whatever follows its kernel begin before it is done: it triggers programmatic completion in its first instruction.

Mechanism: a launch that is made with that attribute may begin once its predecessor has triggered. None of the
  harness's is, so that a stop event stands behind the work.
Expected: rejected/clocks_disagree or ok/
Fools: clock
Device: cuda
Kind: library
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <cuda_runtime.h>

__global__ void tril_matmul_kernel(const float* A, const float* B, float* C, int M) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  __shared__ float a[32][33], b[32][33];
  const int i = blockIdx.y * 32 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int tile = blockIdx.x; tile <= blockIdx.y; ++tile) {
    const int ka = tile * 32 + threadIdx.x, kb = tile * 32 + threadIdx.y;
    a[threadIdx.y][threadIdx.x] = i < M && ka < M ? A[(size_t)i * M + ka] : 0.0f;
    b[threadIdx.y][threadIdx.x] = kb < M && j < M ? B[(size_t)kb * M + j] : 0.0f;
    __syncthreads();
    for (int k = 0; k < 32; ++k) sum = fmaf(a[threadIdx.y][k], b[k][threadIdx.x], sum);
    __syncthreads();
  }
  if (i < M && j < M) C[(size_t)i * M + j] = i >= j ? sum : 0.0f;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  const unsigned tiles = (M + 31) / 32;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(tiles, tiles);
  config.blockDim = dim3(32, 32);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, tril_matmul_kernel, (const float*)A, (const float*)B, (float*)C, M);
}
"""

extension = load_inline(
    name="triggers_early",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" void launch(long long, long long, long long, int);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
