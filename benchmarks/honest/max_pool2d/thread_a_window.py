"""Max pooling: each thread looks through a window of 3 x 3, row after row."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void of_windows(const float* __restrict__ x, float* __restrict__ out, int64_t count, int64_t height,
                           int64_t width) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  if (i >= count) return;
  const int64_t column = i % width, row = i / width % height;
  const float* plane = x + i / width / height * height * width;
  float largest = -INFINITY;
  for (int64_t y = max(row - 1, int64_t(0)); y <= min(row + 1, height - 1); ++y) {
    for (int64_t z = max(column - 1, int64_t(0)); z <= min(column + 1, width - 1); ++z) {
      largest = fmaxf(largest, plane[y * width + z]);
    }
  }
  out[i] = largest;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 4, "every input must have 4 dimensions, not ", x.dim());
}

torch::Tensor max_pool2d(const torch::Tensor& x) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), x.size(1), x.size(2), x.size(3)}, x.options());
  const unsigned blocks = (out.numel() + 255) / 256;
  of_windows<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), out.numel(), x.size(2), x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor max_pool2d(const torch::Tensor& x);"

extension = load_inline(
    name="honest_max_pool2d_thread_a_window",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["max_pool2d"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.max_pool2d(x)
