"""Batch norm: a block has each channel of the whole batch; the mean first, then the variance, a tree for each."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

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

__global__ void of_channels(const float* __restrict__ x, const float* __restrict__ weight,
                            const float* __restrict__ bias,
                            float* __restrict__ out, int64_t batch, int64_t channels, int64_t plane) {
  const int64_t channel = blockIdx.x, count = batch * plane;
  float sum = 0.0f, squares = 0.0f;
  for (int64_t image = 0; image < batch; ++image) {
    const float* first = x + (image * channels + channel) * plane;
    for (int64_t i = threadIdx.x; i < plane; i += 256) sum += first[i];
  }
  const float mean = block_sum(sum) / count;
  for (int64_t image = 0; image < batch; ++image) {
    const float* first = x + (image * channels + channel) * plane;
    for (int64_t i = threadIdx.x; i < plane; i += 256) squares += (first[i] - mean) * (first[i] - mean);
  }
  const float scale = weight[channel] * rsqrtf(block_sum(squares) / count + 1e-5f);
  for (int64_t image = 0; image < batch; ++image) {
    const int64_t first = (image * channels + channel) * plane;
    for (int64_t i = threadIdx.x; i < plane; i += 256) out[first + i] = (x[first + i] - mean) * scale + bias[channel];
  }
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 4, "every input must have 4 dimensions, not ", x.dim());
}

torch::Tensor batch_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  TORCH_CHECK(weight.numel() == x.size(1) && bias.numel() == x.size(1), "there must be a weight for each channel");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty_like(x);
  of_channels<<<unsigned(x.size(1)), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), x.size(0),
      x.size(1), x.size(2) * x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = (
    "torch::Tensor batch_norm(const torch::Tensor& x, "
    "const torch::Tensor& weight, const torch::Tensor& bias);"
)

extension = load_inline(
    name="honest_batch_norm_block_a_channel",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["batch_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, track_running_stats=False)

    def forward(self, x):
        return extension.batch_norm(x, self.norm.weight, self.norm.bias)
