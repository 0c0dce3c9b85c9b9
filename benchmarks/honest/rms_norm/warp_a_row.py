"""Rows over their root mean square: a warp has each row, its lanes every 32nd column."""

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

__global__ void of_rows(const float* __restrict__ x, float* __restrict__ out, int64_t rows, int64_t columns) {
  const int64_t row = blockIdx.x * int64_t(4) + threadIdx.x / 32;
  if (row >= rows) return;  // a whole warp at a time
  float squares = 0.0f;
  for (int64_t column = threadIdx.x % 32; column < columns; column += 32) {
    const float value = x[row * columns + column];
    squares += value * value;
  }
  const float scale = rsqrtf(warp_sum(squares) / columns + 1e-5f);
  for (int64_t column = threadIdx.x % 32; column < columns; column += 32) {
    out[row * columns + column] = x[row * columns + column] * scale;
  }
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 2, "every input must have 2 dimensions, not ", x.dim());
}

torch::Tensor rms_norm(const torch::Tensor& x) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty_like(x);
  const int64_t rows = x.size(0), columns = x.size(1);
  of_rows<<<unsigned((rows + 3) / 4), 128, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), rows, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor rms_norm(const torch::Tensor& x);"

extension = load_inline(
    name="honest_rms_norm_warp_a_row",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["rms_norm"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.rms_norm(x)
