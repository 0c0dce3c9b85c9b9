"""C = A.T @ B on the CPU: C++, OpenMP, a block of C held in vector registers.

A is read in place, A[k, i]: both operands are packed along k into strips, eight (six without AVX-512)
columns of A and two vectors of columns of B wide. The block of C where two strips meet stays in registers
for 1,024 values of k.

    A: |8|8|8|...    B: |  32  |  32  |...    C block (8, 32) += strip of A, transposed, * strip of B

Limits: the packed copies take as much memory as A and B; GCC or Clang with OpenMP.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#ifdef __AVX512F__
constexpr int kLanes = 16;
constexpr int kRows = 8;
#else
constexpr int kLanes = 8;
constexpr int kRows = 6;
#endif
constexpr int kStrip = 2 * kLanes;
constexpr int kBlocks = 8;          // blocks of kRows rows in one piece of work
constexpr int64_t kDepth = 1024;    // a strip of B this deep (128 KiB) stays in L2 for all blocks of a piece

typedef float Vector __attribute__((vector_size(kLanes * sizeof(float)), aligned(sizeof(float))));

// Columns first..first+Width-1 of a (K, columns) matrix, row after row; zeros past the last column.
template <int Width>
static void pack_strip(const float* matrix, float* packed, int64_t first, int64_t columns, int64_t K) {
  const int64_t width = std::min<int64_t>(Width, columns - first);
  for (int64_t k = 0; k < K; ++k, packed += Width) {
    const float* row = matrix + k * columns + first;
    for (int64_t c = 0; c < width; ++c) packed[c] = row[c];
    for (int64_t c = width; c < Width; ++c) packed[c] = 0.0f;
  }
}

// block[r][c] += sum over `depth` values of k of a[k][r] * b[k][c].
static void multiply_block(const float* a, const float* b, int64_t depth, float* block) {
  Vector sum[kRows][2] = {};
  for (int64_t k = 0; k < depth; ++k, a += kRows, b += kStrip) {
    const Vector left = *reinterpret_cast<const Vector*>(b);
    const Vector right = *reinterpret_cast<const Vector*>(b + kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sum[r][0] += a[r] * left;
      sum[r][1] += a[r] * right;
    }
  }
  for (int r = 0; r < kRows; ++r) {
    *reinterpret_cast<Vector*>(block + r * kStrip) += sum[r][0];
    *reinterpret_cast<Vector*>(block + r * kStrip + kLanes) += sum[r][1];
  }
}

// kBlocks blocks of C, one below the other, in the columns of one strip of B.
static void fill_piece(const float* strips_of_a, const float* strip_of_b, float* C, int64_t first_strip,
                       int64_t first_column, int64_t M, int64_t K, int64_t N) {
  const int64_t blocks = std::min<int64_t>(kBlocks, (M + kRows - 1) / kRows - first_strip);
  float piece[kBlocks * kRows * kStrip] = {};
  for (int64_t k = 0; k < K; k += kDepth) {
    const int64_t depth = std::min(kDepth, K - k);
    for (int64_t b = 0; b < blocks; ++b) {
      const float* strip_of_a = strips_of_a + (first_strip + b) * kRows * K;
      multiply_block(strip_of_a + k * kRows, strip_of_b + k * kStrip, depth, piece + b * kRows * kStrip);
    }
  }
  const int64_t first_row = first_strip * kRows;
  const int64_t height = std::min(blocks * kRows, M - first_row);
  const int64_t width = std::min<int64_t>(kStrip, N - first_column);
  for (int64_t r = 0; r < height; ++r) {
    float* target = C + (first_row + r) * N + first_column;
    for (int64_t c = 0; c < width; ++c) target[c] = piece[r * kStrip + c];
  }
}

torch::Tensor matmul_transposed_a_openmp(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.device().is_cpu() && B.device().is_cpu(), "A and B must be CPU tensors");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32,
              "A and B must be float32");
  TORCH_CHECK(A.dim() == 2 && B.dim() == 2, "A and B must be matrices");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const int64_t K = A.size(0), M = A.size(1), N = B.size(1);
  TORCH_CHECK(B.size(0) == K, "A and B must have the same number of rows, not ", K, " and ", B.size(0));

  auto C = torch::empty({M, N}, A.options());
  if (M == 0 || N == 0) return C;
  const int64_t row_strips = (M + kRows - 1) / kRows;
  const int64_t column_strips = (N + kStrip - 1) / kStrip;
  const int64_t pieces = (row_strips + kBlocks - 1) / kBlocks;
  auto packed_a = torch::empty({row_strips * kRows * K}, A.options());
  auto packed_b = torch::empty({column_strips * kStrip * K}, A.options());
  const float* a = A.data_ptr<float>();
  const float* b = B.data_ptr<float>();
  float* c = C.data_ptr<float>();
  float* strips_of_a = packed_a.data_ptr<float>();
  float* strips_of_b = packed_b.data_ptr<float>();

#pragma omp parallel num_threads(at::get_num_threads())
  {
#pragma omp for schedule(static) nowait
    for (int64_t s = 0; s < row_strips; ++s) {
      pack_strip<kRows>(a, strips_of_a + s * kRows * K, s * kRows, M, K);
    }
#pragma omp for schedule(static)
    for (int64_t s = 0; s < column_strips; ++s) {
      pack_strip<kStrip>(b, strips_of_b + s * kStrip * K, s * kStrip, N, K);
    }
    // The barrier at the end of the loop above waits for both packings.
#pragma omp for collapse(2) schedule(dynamic, 1)
    for (int64_t p = 0; p < pieces; ++p) {
      for (int64_t s = 0; s < column_strips; ++s) {
        fill_piece(strips_of_a, strips_of_b + s * kStrip * K, c, p * kBlocks, s * kStrip, M, K, N);
      }
    }
  }
  return C;
}
"""

extension = load_inline(
    name="matmul_transposed_a_openmp_cpu",
    cpp_sources=CPP_SOURCE,
    functions=["matmul_transposed_a_openmp"],
    extra_cflags=["-O3", "-fopenmp", "-march=native"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.matmul_transposed_a_openmp(A, B)
