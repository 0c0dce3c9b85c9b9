"""One warp per element of C = tril(A @ B): the lanes split the sum, shuffles join it.

Over naive_per_element: a long sum is shared by 32 lanes, all of them on the same (i, j), and A[i, k..k+31]
is one coalesced read. The eight warps of a block take eight neighbouring columns, so they share B's 32-byte
sectors.

    block:  C[i, j..j+7]     warp w -> column j + w     lane l -> k = j+w+l, j+w+l+32, ... <= i

Limits: the lanes of a warp read B down a column, a sector for each; short sums leave most lanes idle. The
grid is capped and each block strides on, so M may be tens of thousands.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <limits>

constexpr int kWarps = 8;
constexpr int64_t kMostBlocks = 1 << 20;

__global__ void __launch_bounds__(kWarps * 32)
warp_reduction_kernel(const float* __restrict__ A, const float* __restrict__ B,
                      float* __restrict__ C, int M) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int groups_per_row = (M - 1) / kWarps + 1;
  const int64_t groups = static_cast<int64_t>(groups_per_row) * M;

  for (int64_t group = blockIdx.x; group < groups; group += gridDim.x) {
    // From the bottom row up, so that the longest sums are not the last to start.
    const int i = M - 1 - static_cast<int>(group / groups_per_row);
    const int j = static_cast<int>(group % groups_per_row) * kWarps + warp;
    if (j >= M) continue;  // the same for all lanes of the warp

    float sum = 0.0f;
    for (int k = j + lane; k <= i; k += 32) {
      sum = fmaf(A[static_cast<int64_t>(i) * M + k], B[static_cast<int64_t>(k) * M + j], sum);
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (lane == 0) C[static_cast<int64_t>(i) * M + j] = sum;
  }
}

torch::Tensor tril_matmul_warp(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.device() == B.device(), "A and B must be on the same device");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.dim() == 2 && B.dim() == 2, "A and B must be matrices");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const int64_t M = A.size(0);
  TORCH_CHECK(A.size(1) == M && B.size(0) == M && B.size(1) == M,
              "A and B must be square and of the same size");
  TORCH_CHECK(M <= std::numeric_limits<int>::max() - 64, "M is too large for 32-bit row numbers: ", M);

  const c10::cuda::CUDAGuard guard(A.device());
  auto C = torch::empty({M, M}, A.options());
  if (M == 0) return C;
  const int64_t groups = ((M - 1) / kWarps + 1) * M;
  const unsigned blocks = static_cast<unsigned>(std::min(groups, kMostBlocks));
  warp_reduction_kernel<<<blocks, kWarps * 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
      A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), static_cast<int>(M));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return C;
}
"""

CPP_SOURCE = "torch::Tensor tril_matmul_warp(const torch::Tensor& A, const torch::Tensor& B);"

extension = load_inline(
    name="tril_matmul_warp_reduction",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["tril_matmul_warp"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul_warp(A, B)
