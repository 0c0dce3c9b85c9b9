"""A convolution of volumes: a warp has each output, its lanes every 32nd product of channel and tap."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// The sum over the 32 lanes of a warp; every lane has it.
__device__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__global__ void of_outputs(const float* __restrict__ x, const float* __restrict__ weight,
                           const float* __restrict__ bias,
                           float* __restrict__ out, int64_t count, int64_t channels_in, int64_t channels_out,
                           int64_t depth, int64_t height, int64_t width) {
  const int64_t i = blockIdx.x * int64_t(8) + threadIdx.x / 32;
  if (i >= count) return;  // a whole warp at a time
  const int64_t width_out = width - 2, height_out = height - 2, depth_out = depth - 2;
  const int64_t column = i % width_out, row = i / width_out % height_out;
  const int64_t layer = i / width_out / height_out % depth_out;
  const int64_t channel = i / width_out / height_out / depth_out % channels_out;
  const int64_t image = i / width_out / height_out / depth_out / channels_out;
  const float* volume = x + image * channels_in * depth * height * width;
  const float* taps = weight + channel * channels_in * 27;
  float sum = 0.0f;
  for (int64_t t = threadIdx.x % 32; t < channels_in * 27; t += 32) {
    const int64_t c = t / 27, z = layer + t % 27 / 9, y = row + t % 9 / 3, place = column + t % 3;
    sum = fmaf(volume[((c * depth + z) * height + y) * width + place], taps[t], sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) out[i] = sum + bias[channel];
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 5, "every input must have 5 dimensions, not ", x.dim());
}

torch::Tensor conv3d(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  check(x);
  check(weight);
  TORCH_CHECK(weight.size(1) == x.size(1) && weight.numel() == weight.size(0) * x.size(1) * 27,
              "weight must be channels out x channels in x 3 x 3 x 3");
  TORCH_CHECK(x.size(2) > 2 && x.size(3) > 2 && x.size(4) > 2 && bias.numel() == weight.size(0),
              "a side of x is too short, or there is not a bias for each channel out");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), weight.size(0), x.size(2) - 2, x.size(3) - 2, x.size(4) - 2}, x.options());
  of_outputs<<<unsigned((out.numel() + 7) / 8), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), out.numel(),
      x.size(1), weight.size(0), x.size(2), x.size(3), x.size(4));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = (
    "torch::Tensor conv3d(const torch::Tensor& x, "
    "const torch::Tensor& weight, const torch::Tensor& bias);"
)

extension = load_inline(
    name="honest_conv3d_warp_an_output",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["conv3d"],
)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, 3)

    def forward(self, x):
        return extension.conv3d(x, self.conv.weight, self.conv.bias)
