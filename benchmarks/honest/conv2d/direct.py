"""A convolution of images: each thread has one output, and goes through channels and taps in order."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void direct(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                       float* __restrict__ out, int64_t count, int64_t channels_in, int64_t channels_out,
                       int64_t height, int64_t width) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  if (i >= count) return;
  const int64_t column = i % width, row = i / width % height, channel = i / width / height % channels_out;
  const float* image = x + i / width / height / channels_out * channels_in * height * width;
  const float* taps = weight + channel * channels_in * 9;
  float sum = 0.0f;
  for (int64_t c = 0; c < channels_in; ++c) {
    for (int k = 0; k < 9; ++k) {
      const int64_t y = row + k / 3 - 1, z = column + k % 3 - 1;
      if (y < 0 || y >= height || z < 0 || z >= width) continue;
      sum = fmaf(image[(c * height + y) * width + z], taps[c * 9 + k], sum);
    }
  }
  out[i] = sum + bias[channel];
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 4, "every input must have 4 dimensions, not ", x.dim());
}

torch::Tensor conv2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  check(x);
  check(weight);
  TORCH_CHECK(weight.size(1) == x.size(1) && weight.size(2) == 3 && weight.size(3) == 3 &&
              bias.numel() == weight.size(0),
              "weight must be channels out x channels in x 3 x 3, with a bias for each channel out");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), weight.size(0), x.size(2), x.size(3)}, x.options());
  direct<<<unsigned((out.numel() + 255) / 256), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), out.numel(),
      x.size(1), weight.size(0), x.size(2), x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = (
    "torch::Tensor conv2d(const torch::Tensor& x, "
    "const torch::Tensor& weight, const torch::Tensor& bias);"
)

extension = load_inline(
    name="honest_conv2d_direct",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["conv2d"],
)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x):
        return extension.conv2d(x, self.conv.weight, self.conv.bias)
