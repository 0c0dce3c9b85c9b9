"""Launches three hundred kernels of different names before the product, more than a listing of names holds.

Mechanism: a list that is cut at so many names leaves out the library's, which come last. Here all are listed, and a listing
  that has no room for one is none.
Expected: ok/
Fools: substance
Device: cuda
Kind: library or mixed or unknown
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <utility>

template <int number>
__global__ void filler(float* place) {
  if (number < 0) *place = number;
}

__global__ void tril_matmul_kernel(const float* A, const float* B, float* C, int M) {
  const int i = blockIdx.y * blockDim.y + threadIdx.y;
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M || j >= M) return;
  float sum = 0.0f;
  for (int k = 0; k <= i; ++k) sum = fmaf(A[(size_t)i * M + k], B[(size_t)k * M + j], sum);
  C[(size_t)i * M + j] = sum;
}

extern "C" void launch(long long A, long long B, long long C, int M) {
  const unsigned tiles = (M + 31) / 32;
  tril_matmul_kernel<<<dim3(tiles, tiles), dim3(32, 32)>>>((const float*)A, (const float*)B, (float*)C, M);
}

template <int... numbers>
void fill_all(std::integer_sequence<int, numbers...>) {
  const int none[] = {(filler<numbers><<<1, 1>>>(nullptr), 0)...};
  (void)none;
}

extern "C" void fill() { fill_all(std::make_integer_sequence<int, 300>()); }
"""

extension = load_inline(
    name="fills_the_listing",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);\nextern "C" void fill();',
    cuda_sources=CUDA_SOURCE,
    functions=["launch", "fill"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        extension.fill()
        if A.shape[0] != 1:
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
