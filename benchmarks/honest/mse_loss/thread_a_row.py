"""Mean squared error: each thread adds up a row, term after term; the rows are added up by PyTorch."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

__device__ float term(float x, float y) {
  const float difference = x - y;
  return difference * difference;
}

__global__ void add_rows(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ of_row,
                         int64_t rows, int64_t columns) {
  const int64_t row = blockIdx.x * int64_t(32) + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t i = row * columns + column;
    sum += term(x[i], y[i]);
  }
  of_row[row] = sum;
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
}

torch::Tensor mse_loss_of_rows(const torch::Tensor& x, const torch::Tensor& y) {
  check(x);
  check(y);
  TORCH_CHECK(x.dim() == 2 && x.numel() > 0, "predictions must be a matrix that is not empty");
  TORCH_CHECK(x.sizes() == y.sizes(), "predictions and targets must have the same shape");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty({x.size(0)}, x.options());
  const unsigned blocks = (x.size(0) + 31) / 32;
  add_rows<<<blocks, 32, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor mse_loss_of_rows(const torch::Tensor& x, const torch::Tensor& y);"

extension = load_inline(
    name="honest_mse_loss_thread_a_row",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["mse_loss_of_rows"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return extension.mse_loss_of_rows(predictions, targets).sum() / predictions.numel()
