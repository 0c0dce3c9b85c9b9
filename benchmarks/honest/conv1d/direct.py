"""A convolution along lines: each thread has one output, and goes through channels and taps in order."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void direct(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                       float* __restrict__ out, int64_t count, int64_t channels_in, int64_t channels_out,
                       int64_t length) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  if (i >= count) return;
  const int64_t length_out = length - 2, place = i % length_out, channel = i / length_out % channels_out;
  const float* line = x + i / length_out / channels_out * channels_in * length + place;
  const float* taps = weight + channel * channels_in * 3;
  float sum = bias[channel];
  for (int64_t c = 0; c < channels_in; ++c) {
    for (int k = 0; k < 3; ++k) sum = fmaf(line[c * length + k], taps[c * 3 + k], sum);
  }
  out[i] = sum;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 3, "every input must have 3 dimensions, not ", x.dim());
}

torch::Tensor conv1d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  check(x);
  check(weight);
  TORCH_CHECK(x.size(2) > 2 && weight.size(1) == x.size(1) && weight.size(2) == 3 && bias.numel() == weight.size(0),
              "weight must be channels out x channels in x 3, with a bias for each channel out");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), weight.size(0), x.size(2) - 2}, x.options());
  direct<<<unsigned((out.numel() + 255) / 256), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), out.numel(),
      x.size(1), weight.size(0), x.size(2));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = (
    "torch::Tensor conv1d(const torch::Tensor& x, "
    "const torch::Tensor& weight, const torch::Tensor& bias);"
)

extension = load_inline(
    name="honest_conv1d_direct",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["conv1d"],
)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv1d(channels_in, channels_out, 3)

    def forward(self, x):
        return extension.conv1d(x, self.conv.weight, self.conv.bias)
