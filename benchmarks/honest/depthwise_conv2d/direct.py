"""A convolution of each channel by itself: each thread has one output, and goes through its 49 taps in order."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void direct(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ out,
                       int64_t count, int64_t channels, int64_t height, int64_t width) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  if (i >= count) return;
  const int64_t column = i % width, row = i / width % height, plane = i / width / height;
  const float* taps = weight + plane % channels * 49;
  float sum = 0.0f;
  for (int k = 0; k < 49; ++k) {
    const int64_t y = row + k / 7 - 3, z = column + k % 7 - 3;
    if (y < 0 || y >= height || z < 0 || z >= width) continue;
    sum = fmaf(x[(plane * height + y) * width + z], taps[k], sum);
  }
  out[i] = sum;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 4, "every input must have 4 dimensions, not ", x.dim());
}

torch::Tensor depthwise_conv2d(const torch::Tensor& x, const torch::Tensor& weight) {
  check(x);
  check(weight);
  TORCH_CHECK(weight.size(0) == x.size(1) && weight.numel() == x.size(1) * 49, "weight must be channels x 1 x 7 x 7");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty_like(x);
  direct<<<unsigned((out.numel() + 255) / 256), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), out.data_ptr<float>(), out.numel(), x.size(1), x.size(2),
      x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor depthwise_conv2d(const torch::Tensor& x, const torch::Tensor& weight);"

extension = load_inline(
    name="honest_depthwise_conv2d_direct",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["depthwise_conv2d"],
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels, bias=False)

    def forward(self, x):
        return extension.depthwise_conv2d(x, self.conv.weight)
