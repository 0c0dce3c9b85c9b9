"""The mean along the middle dimension: each thread adds up a column, term after term."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void of_columns(const float* __restrict__ x, float* __restrict__ out, int64_t batch, int64_t length,
                           int64_t width) {
  const int64_t column = blockIdx.x * int64_t(64) + threadIdx.x;
  if (column >= batch * width) return;
  const float* first = x + column / width * length * width + column % width;
  float sum = 0.0f;
  for (int64_t i = 0; i < length; ++i) sum += first[i * width];
  out[column] = sum / length;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 3, "every input must have 3 dimensions, not ", x.dim());
}

torch::Tensor mean_over_dimension(const torch::Tensor& x) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), x.size(2)}, x.options());
  const unsigned blocks = (out.numel() + 63) / 64;
  of_columns<<<blocks, 64, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1), x.size(2));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor mean_over_dimension(const torch::Tensor& x);"

extension = load_inline(
    name="honest_mean_over_dimension_thread_a_column",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["mean_over_dimension"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.mean_over_dimension(x)
