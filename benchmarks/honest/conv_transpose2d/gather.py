"""A transposed convolution: each thread gathers what reaches one output, through taps and channels in order."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void gather(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                       float* __restrict__ out, int64_t count, int64_t channels_in, int64_t channels_out,
                       int64_t height, int64_t width) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  if (i >= count) return;
  const int64_t width_out = 2 * width - 1, height_out = 2 * height - 1;
  const int64_t column = i % width_out, row = i / width_out % height_out;
  const int64_t channel = i / width_out / height_out % channels_out;
  const float* image = x + i / width_out / height_out / channels_out * channels_in * height * width;
  float sum = bias[channel];
  for (int k = 0; k < 9; ++k) {
    // Input (y, z) reaches outputs 2 y - 1 + k / 3 and 2 z - 1 + k % 3.
    const int64_t twice_y = row + 1 - k / 3, twice_z = column + 1 - k % 3;
    if (twice_y < 0 || twice_z < 0 || twice_y % 2 || twice_z % 2) continue;
    const int64_t y = twice_y / 2, z = twice_z / 2;
    if (y >= height || z >= width) continue;
    for (int64_t c = 0; c < channels_in; ++c) {
      sum = fmaf(image[(c * height + y) * width + z], weight[(c * channels_out + channel) * 9 + k], sum);
    }
  }
  out[i] = sum;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 4, "every input must have 4 dimensions, not ", x.dim());
}

torch::Tensor conv_transpose2d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  check(x);
  check(weight);
  TORCH_CHECK(weight.size(0) == x.size(1) && weight.size(2) == 3 && weight.size(3) == 3 &&
              bias.numel() == weight.size(1),
              "weight must be channels in x channels out x 3 x 3, with a bias for each channel out");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), weight.size(1), 2 * x.size(2) - 1, 2 * x.size(3) - 1}, x.options());
  gather<<<unsigned((out.numel() + 255) / 256), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), out.numel(),
      x.size(1), weight.size(1), x.size(2), x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = (
    "torch::Tensor conv_transpose2d(const torch::Tensor& x, "
    "const torch::Tensor& weight, const torch::Tensor& bias);"
)

extension = load_inline(
    name="honest_conv_transpose2d_gather",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["conv_transpose2d"],
)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels_in, channels_out, 3, stride=2, padding=1)

    def forward(self, x):
        return extension.conv_transpose2d(x, self.conv.weight, self.conv.bias)
