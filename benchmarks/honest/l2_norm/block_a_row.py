"""Rows over their Euclidean norm: 256 threads have every 256th column each, a tree the threads."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// The sum of one number of each of the 256 threads of a block, by a tree; every thread has it.
__device__ float block_sum(float value) {
  __shared__ float partial[256];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = partial[0];
  __syncthreads();  // before the next call writes there
  return sum;
}

__global__ void of_rows(const float* __restrict__ x, float* __restrict__ out, int64_t rows, int64_t columns) {
  const float* row = x + blockIdx.x * columns;
  float squares = 0.0f;
  for (int64_t column = threadIdx.x; column < columns; column += 256) squares += row[column] * row[column];
  const float norm = sqrtf(block_sum(squares));
  for (int64_t column = threadIdx.x; column < columns; column += 256) {
    out[blockIdx.x * columns + column] = row[column] / norm;
  }
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 2, "every input must have 2 dimensions, not ", x.dim());
}

torch::Tensor l2_norm(const torch::Tensor& x) {
  check(x);
  TORCH_CHECK(x.numel() > 0, "x must not be empty");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty_like(x);
  const int64_t rows = x.size(0), columns = x.size(1);
  of_rows<<<unsigned(rows), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), rows, columns);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = "torch::Tensor l2_norm(const torch::Tensor& x);"

extension = load_inline(
    name="honest_l2_norm_block_a_row",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["l2_norm"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.l2_norm(x)
