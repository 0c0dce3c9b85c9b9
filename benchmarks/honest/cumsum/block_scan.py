"""Running sums of rows: Hillis and Steele's scan of 256 columns at a time, with what came before carried on."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void of_rows(const float* __restrict__ x, float* __restrict__ out, int64_t rows, int64_t columns) {
  __shared__ float sums[256];
  float before = 0.0f;
  for (int64_t first = 0; first < columns; first += 256) {
    const int64_t column = first + threadIdx.x;
    sums[threadIdx.x] = column < columns ? x[blockIdx.x * columns + column] : 0.0f;
    __syncthreads();
    for (int offset = 1; offset < 256; offset *= 2) {
      const float left = threadIdx.x >= offset ? sums[threadIdx.x - offset] : 0.0f;
      __syncthreads();
      sums[threadIdx.x] += left;
      __syncthreads();
    }
    if (column < columns) out[blockIdx.x * columns + column] = before + sums[threadIdx.x];
    before += sums[255];
    __syncthreads();  // before the next columns are written there
  }
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 2, "every input must have 2 dimensions, not ", x.dim());
}

torch::Tensor cumsum(const torch::Tensor& x) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty_like(x);
  const int64_t rows = x.size(0), columns = x.size(1);
  of_rows<<<unsigned(rows), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), rows, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor cumsum(const torch::Tensor& x);"

extension = load_inline(
    name="honest_cumsum_block_scan",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["cumsum"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.cumsum(x)
