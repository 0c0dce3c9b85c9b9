"""The place of the largest number: each thread looks through a column; of equals the first counts."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__global__ void of_columns(const float* __restrict__ x, int64_t* __restrict__ out, int64_t batch, int64_t length,
                           int64_t width) {
  const int64_t column = blockIdx.x * int64_t(64) + threadIdx.x;
  if (column >= batch * width) return;
  const float* first = x + column / width * length * width + column % width;
  int64_t place = 0;
  for (int64_t i = 1; i < length; ++i) {
    if (first[i * width] > first[place * width]) place = i;
  }
  out[column] = place;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 3, "every input must have 3 dimensions, not ", x.dim());
}

torch::Tensor argmax(const torch::Tensor& x) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0), x.size(2)}, x.options().dtype(torch::kInt64));
  const unsigned blocks = (out.numel() + 63) / 64;
  of_columns<<<blocks, 64, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<int64_t>(), x.size(0), x.size(1), x.size(2));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor argmax(const torch::Tensor& x);"

extension = load_inline(
    name="honest_argmax_thread_a_column",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["argmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.argmax(x)
