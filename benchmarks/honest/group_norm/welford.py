"""Group norm: each of 256 threads runs Welford's recurrence over its elements, and a tree merges the threads."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// Mean and sum of squared distances from it of two sets, merged into the first.
__device__ void merge(float& count, float& mean, float& squares, float other_count, float other_mean,
                      float other_squares) {
  if (other_count == 0.0f) return;
  const float both = count + other_count, distance = other_mean - mean;
  mean += distance * other_count / both;
  squares += other_squares + distance * distance * count * other_count / both;
  count = both;
}

__global__ void of_groups(const float* __restrict__ x, const float* __restrict__ weight,
                          const float* __restrict__ bias,
                          float* __restrict__ out, int64_t groups, int64_t channels, int64_t plane) {
  __shared__ float count_of[256], mean_of[256], squares_of[256];
  const int thread = threadIdx.x;
  const int64_t of_group = channels / groups, elements = of_group * plane, first = blockIdx.x * elements;
  float count = 0.0f, mean = 0.0f, squares = 0.0f;
  for (int64_t i = thread; i < elements; i += 256) merge(count, mean, squares, 1.0f, x[first + i], 0.0f);
  count_of[thread] = count;
  mean_of[thread] = mean;
  squares_of[thread] = squares;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (thread < half) {
      merge(count_of[thread], mean_of[thread], squares_of[thread], count_of[thread + half], mean_of[thread + half],
            squares_of[thread + half]);
    }
    __syncthreads();
  }
  const float scale = rsqrtf(squares_of[0] / elements + 1e-5f);
  const int64_t first_channel = blockIdx.x % groups * of_group;
  for (int64_t i = thread; i < elements; i += 256) {
    const int64_t channel = first_channel + i / plane;
    out[first + i] = (x[first + i] - mean_of[0]) * scale * weight[channel] + bias[channel];
  }
}

static void check(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32,
              "every input must be a contiguous float32 CUDA tensor");
  TORCH_CHECK(x.dim() == 4, "every input must have 4 dimensions, not ", x.dim());
}

torch::Tensor group_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                         int64_t groups) {
  check(x);
  TORCH_CHECK(x.numel() > 0 && groups > 0 && x.size(1) % groups == 0, "channels must fall into the groups");
  TORCH_CHECK(weight.numel() == x.size(1) && bias.numel() == x.size(1), "there must be a weight for each channel");
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty_like(x);
  of_groups<<<unsigned(x.size(0) * groups), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), groups, x.size(1),
      x.size(2) * x.size(3));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""

CPP_SOURCE = (
    "torch::Tensor group_norm(const torch::Tensor& x, "
    "const torch::Tensor& weight, const torch::Tensor& bias, int64_t groups);"
)

extension = load_inline(
    name="honest_group_norm_welford",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["group_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        return extension.group_norm(x, self.norm.weight, self.norm.bias, self.norm.num_groups)
