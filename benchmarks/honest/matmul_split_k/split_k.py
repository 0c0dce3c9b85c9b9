"""A product that is split along its long side: 32 partial products, each summed in order, then added up in order."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kTile = 16, kSplits = 32;

__global__ void partial_products(const float* __restrict__ a, const float* __restrict__ b,
                                 float* __restrict__ partial,
                                 int64_t m, int64_t k, int64_t n) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int64_t row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  const int64_t share = (k + kSplits - 1) / kSplits, from = blockIdx.z * share, to = min(from + share, k);
  float sum = 0.0f;
  for (int64_t first = from; first < to; first += kTile) {
    const int64_t k_of_a = first + threadIdx.x, k_of_b = first + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < m && k_of_a < to ? a[row * k + k_of_a] : 0.0f;
    tile_b[threadIdx.y][threadIdx.x] = k_of_b < to && column < n ? b[k_of_b * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = fmaf(tile_a[threadIdx.y][i], tile_b[i][threadIdx.x], sum);
    __syncthreads();
  }
  if (row < m && column < n) partial[(blockIdx.z * m + row) * n + column] = sum;
}

__global__ void add_up(const float* __restrict__ partial, float* __restrict__ out, int64_t count) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  if (i >= count) return;
  float sum = 0.0f;
  for (int split = 0; split < kSplits; ++split) sum += partial[split * count + i];
  out[i] = sum;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 2, "every input must have 2 dimensions, not ", x.dim());
}

torch::Tensor split_k(const torch::Tensor& x, const torch::Tensor& y) {
  check(x);
  check(y);
  TORCH_CHECK(x.size(1) == y.size(0) && x.numel() > 0 && y.numel() > 0, "the columns of a must be the rows of b");
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t m = x.size(0), k = x.size(1), n = y.size(1);
  auto partial = torch::empty({kSplits, m, n}, x.options());
  auto out = torch::empty({m, n}, x.options());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const dim3 tiles(unsigned((n + kTile - 1) / kTile), unsigned((m + kTile - 1) / kTile), kSplits);
  partial_products<<<tiles, dim3(kTile, kTile), 0, stream>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), partial.data_ptr<float>(), m, k, n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  add_up<<<unsigned((m * n + 255) / 256), 256, 0, stream>>>(partial.data_ptr<float>(), out.data_ptr<float>(), m * n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor split_k(const torch::Tensor& x, const torch::Tensor& y);"

extension = load_inline(
    name="honest_matmul_split_k_split_k",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["split_k"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.split_k(a, b)
