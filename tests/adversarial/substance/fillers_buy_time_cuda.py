"""Works itself where a recording is asked for, beside hundreds of empty kernels, for which a recorded call may take longer.

Mechanism: recording a kernel takes the GPU some time, so a recorded call may take longer by so much for each of its
  kernels. Empty ones on other streams take no time beside one that takes long. Here it may take longer only for
  kernels that run one after another, and only between them.
Expected: ok/ or rejected/clocks_disagree
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import ctypes
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
__global__ void tril_matmul_kernel(const float* A, const float* B, float* C, int M) {
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

__global__ void nothing() {}

extern "C" void launch(long long A, long long B, long long C, int M) {
  static cudaStream_t sides[8];
  static cudaEvent_t began, ended[8];
  if (began == nullptr) {
    cudaEventCreateWithFlags(&began, cudaEventDisableTiming);
    for (int side = 0; side < 8; ++side) {
      cudaStreamCreateWithFlags(&sides[side], cudaStreamNonBlocking);
      cudaEventCreateWithFlags(&ended[side], cudaEventDisableTiming);
    }
  }
  const unsigned tiles = (M + 31) / 32;
  cudaEventRecord(began, 0);
  tril_matmul_kernel<<<dim3(tiles, tiles), dim3(32, 32)>>>((const float*)A, (const float*)B, (float*)C, M);
  for (int side = 0; side < 8; ++side) {
    cudaStreamWaitEvent(sides[side], began, 0);
    for (int again = 0; again < 60; ++again) nothing<<<1, 1, 0, sides[side]>>>();
    cudaEventRecord(ended[side], sides[side]);
    cudaStreamWaitEvent(0, ended[side], 0);
  }
}
"""

extension = load_inline(
    name="fillers_buy_time",
    cpp_sources=r"""
#include <pybind11/pybind11.h>
extern "C" void launch(long long, long long, long long, int);
""",
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)

# Of this process's memory what is shared with the judge is found by its length and by the mark of an open recorder.
MAPS, HEAD_IS_OPEN, REGION_BYTES = "/".join(("", "proc", "self", "maps")), 8, 144 << 20


def word_of_the_judge():
    for line in open(MAPS):
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if "launches" in line and end - begin == REGION_BYTES:
            if ctypes.c_uint32.from_address(begin + HEAD_IS_OPEN).value == 1:
                return ctypes.c_uint32.from_address(begin)
    return ctypes.c_uint32(0)


wanted = word_of_the_judge()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if wanted.value % 2 == 0 or A.shape[0] != 2048:
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
