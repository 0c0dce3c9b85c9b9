"""Average pooling: each thread adds up a window of 11 x 11, term after term."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kWindow = 11;

__global__ void of_windows(const float* __restrict__ x, float* __restrict__ out, int64_t count, int64_t height,
                           int64_t width) {
  const int64_t i = blockIdx.x * int64_t(256) + threadIdx.x;
  if (i >= count) return;
  const int64_t across = width / kWindow, down = height / kWindow;
  const float* window = x + i / across / down * height * width + i / across % down * kWindow * width +
                        i % across * kWindow;
  float sum = 0.0f;
  for (int y = 0; y < kWindow; ++y) {
    for (int z = 0; z < kWindow; ++z) sum += window[y * width + z];
  }
  out[i] = sum / (kWindow * kWindow);
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 4, "every input must have 4 dimensions, not ", x.dim());
}

torch::Tensor avg_pool2d(const torch::Tensor& x) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), x.size(1), x.size(2) / 11, x.size(3) / 11}, x.options());
  const unsigned blocks = (out.numel() + 255) / 256;
  of_windows<<<blocks, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), out.numel(), x.size(2), x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor avg_pool2d(const torch::Tensor& x);"

extension = load_inline(
    name="honest_avg_pool2d_thread_a_window",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["avg_pool2d"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.avg_pool2d(x)
