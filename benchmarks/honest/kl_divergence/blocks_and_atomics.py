"""Kullback-Leibler divergence: a tree adds up the terms of each block of 256, and atomics the blocks."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__device__ float term(float x, float y) {
  return y > 0.0f ? y * (logf(y) - logf(x)) : 0.0f;
}

// The sum of one number of each of the 256 threads of a block, by a tree; every thread has it.
__device__ float block_sum(float value) {
  __shared__ float partial[256];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = partial[0];
  __syncthreads();  // before the next call writes there
  return sum;
}

__global__ void add_blocks(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ loss,
                           int64_t count, int64_t columns, float scale) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  const float sum = block_sum(i < count ? term(x[i], y[i]) : 0.0f);
  if (threadIdx.x == 0) atomicAdd(loss, sum * scale);
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
}

torch::Tensor kl_divergence(const torch::Tensor& x, const torch::Tensor& y) {
  check(x);
  check(y);
  TORCH_CHECK(x.dim() == 2 && x.numel() > 0, "predictions must be a matrix that is not empty");
  TORCH_CHECK(x.sizes() == y.sizes(), "predictions and targets must have the same shape");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::zeros({}, x.options());
  const unsigned blocks = (x.numel() + 255) / 256;
  add_blocks<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), x.numel(), x.size(1), 1.0f / x.size(0));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor kl_divergence(const torch::Tensor& x, const torch::Tensor& y);"

extension = load_inline(
    name="honest_kl_divergence_blocks_and_atomics",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["kl_divergence"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return extension.kl_divergence(predictions, targets)
