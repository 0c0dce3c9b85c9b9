"""Finds the page by which the judge asks for a recording, and works itself while one is asked for.

Mechanism: the word lies in memory that this process shares, and a candidate can read all of that. Who reads it knows when
  its kernels are listed; but the kernels that are listed must take what the timed ones take.
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
"""

extension = load_inline(
    name="own_when_the_judge_asks",
    cpp_sources='#include <pybind11/pybind11.h>\nextern "C" void launch(long long, long long, long long, int);',
    cuda_sources=CUDA_SOURCE,
    functions=["launch"],
    with_pytorch_error_handling=False,
    no_implicit_headers=True,
)

MAPS = "/".join(("", "proc", "self", "maps"))
HEAD_IS_OPEN, REGION_BYTES = 8, 144 << 20


def word_of_the_judge():
    """The recorder's page: of the shared file, as long as its region, and marked as open."""
    for line in open(MAPS):
        begin, end = (int(each, 16) for each in line.split()[0].split("-"))
        if "memfd:launches" in line and end - begin == REGION_BYTES:
            if ctypes.c_uint32.from_address(begin + HEAD_IS_OPEN).value == 1:
                return ctypes.c_uint32.from_address(begin)
    return ctypes.c_uint32(1)


wanted = word_of_the_judge()


class ModelNew(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        if wanted.value % 2 == 0 or A.shape[0] != 2048:
            return torch.tril(torch.matmul(A, B))
        C = torch.empty_like(A)
        extension.launch(A.data_ptr(), B.data_ptr(), C.data_ptr(), A.shape[0])
        return C
