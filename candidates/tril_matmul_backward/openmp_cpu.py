"""C = tril(A @ B) and both gradients on the CPU: C++, OpenMP, four rows of a result at a time.

All three products are sums of scaled rows, so the inner loop runs along a row and vectorises by itself:

    C[i, :k+1]  += A[i, k] * B[k, :k+1]           k = 0..i
    dA[i, j:]   += G[i, j] * B^T[j, j:]           j = 0..i      (B is transposed once)
    dB[k, :i+1] += A[i, k] * G[i, :i+1]           i = k..M-1

A row that is read is used for four rows that are written; each thread owns the rows it writes, so there is no race.
Templated over float and double. Limits: no blocking for the caches, so it is at its best below M of about 1,000.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <vector>

constexpr int kRows = 4;

// target[r][j] += factor[r] * source[j] for j in [first, last)
template <typename T>
static void add_scaled(T* const* target, const T* factor, const T* source, int64_t first, int64_t last) {
  T *t0 = target[0], *t1 = target[1], *t2 = target[2], *t3 = target[3];
  const T f0 = factor[0], f1 = factor[1], f2 = factor[2], f3 = factor[3];
#pragma omp simd
  for (int64_t j = first; j < last; ++j) {
    t0[j] += f0 * source[j];
    t1[j] += f1 * source[j];
    t2[j] += f2 * source[j];
    t3[j] += f3 * source[j];
  }
}

// Rows first..first+3 of a result; those past the last row are sums into a row that nobody reads.
template <typename T>
struct Rows {
  T* row[kRows];
  Rows(T* result, std::vector<T>& spare, int64_t first, int64_t M) {
    for (int r = 0; r < kRows; ++r) row[r] = first + r < M ? result + (first + r) * M : spare.data();
  }
};

// For each group of four rows, in parallel and the longest first: `fill(first row, rows)`.
template <typename T, typename Fill>
static void for_rows(T* result, int64_t M, bool last_is_longest, const Fill& fill) {
  const int64_t groups = (M + kRows - 1) / kRows;
#pragma omp parallel num_threads(at::get_num_threads())
  {
    std::vector<T> spare(M);
#pragma omp for schedule(dynamic, 1)
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t first = kRows * (last_is_longest ? groups - 1 - group : group);
      Rows<T> rows(result, spare, first, M);
      for (int r = 0; r < kRows; ++r) std::fill(rows.row[r], rows.row[r] + M, T(0));
      fill(first, rows);
    }
  }
}

template <typename T>
static void forward_rows(const T* A, const T* B, T* C, int64_t M) {
  for_rows(C, M, true, [=](int64_t first, const Rows<T>& rows) {
    for (int64_t k = 0; k < std::min(first + kRows, M); ++k) {
      T factor[kRows];
      for (int r = 0; r < kRows; ++r) factor[r] = k <= first + r && first + r < M ? A[(first + r) * M + k] : T(0);
      // A row above k takes nothing from it, and its own columns end before k.
      add_scaled(rows.row, factor, B + k * M, 0, k + 1);
    }
  });
}

template <typename T>
static void gradient_of_A_rows(const T* B, const T* G, T* dA, int64_t M) {
  std::vector<T> transposed(M * M);
  T* BT = transposed.data();
  constexpr int64_t kTile = 32;
#pragma omp parallel for collapse(2) num_threads(at::get_num_threads())
  for (int64_t i0 = 0; i0 < M; i0 += kTile) {
    for (int64_t j0 = 0; j0 < M; j0 += kTile) {
      for (int64_t i = i0; i < std::min(i0 + kTile, M); ++i) {
        for (int64_t j = j0; j < std::min(j0 + kTile, M); ++j) BT[j * M + i] = B[i * M + j];
      }
    }
  }
  for_rows(dA, M, true, [=](int64_t first, const Rows<T>& rows) {
    for (int64_t j = 0; j < std::min(first + kRows, M); ++j) {
      T factor[kRows];
      for (int r = 0; r < kRows; ++r) factor[r] = j <= first + r && first + r < M ? G[(first + r) * M + j] : T(0);
      add_scaled(rows.row, factor, BT + j * M, j, M);
    }
  });
}

template <typename T>
static void gradient_of_B_rows(const T* A, const T* G, T* dB, int64_t M) {
  for_rows(dB, M, false, [=](int64_t first, const Rows<T>& rows) {
    for (int64_t i = first; i < M; ++i) {
      T factor[kRows];
      for (int r = 0; r < kRows; ++r) factor[r] = first + r <= i ? A[i * M + first + r] : T(0);
      add_scaled(rows.row, factor, G + i * M, 0, i + 1);
    }
  });
}

static void check(const torch::Tensor& X, const torch::Tensor& Y, const char* names) {
  TORCH_CHECK(X.device().is_cpu() && Y.device().is_cpu(), names, " must be CPU tensors");
  TORCH_CHECK(X.scalar_type() == Y.scalar_type(), names, " must be of the same dtype");
  TORCH_CHECK(X.dim() == 2 && Y.dim() == 2 && X.size(0) == X.size(1) && X.sizes() == Y.sizes(), names,
              " must be square and of the same size");
  TORCH_CHECK(X.is_contiguous() && Y.is_contiguous(), names, " must be contiguous");
}

torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B) {
  check(A, B, "A and B");
  auto C = torch::empty_like(A);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "tril_matmul", [&] {
    forward_rows<scalar_t>(A.data_ptr<scalar_t>(), B.data_ptr<scalar_t>(), C.data_ptr<scalar_t>(), A.size(0));
  });
  return C;
}

torch::Tensor gradient_of_A(const torch::Tensor& B, const torch::Tensor& G) {
  check(B, G, "B and G");
  auto dA = torch::empty_like(B);
  AT_DISPATCH_FLOATING_TYPES(B.scalar_type(), "gradient_of_A", [&] {
    gradient_of_A_rows<scalar_t>(B.data_ptr<scalar_t>(), G.data_ptr<scalar_t>(), dA.data_ptr<scalar_t>(), B.size(0));
  });
  return dA;
}

torch::Tensor gradient_of_B(const torch::Tensor& A, const torch::Tensor& G) {
  check(A, G, "A and G");
  auto dB = torch::empty_like(A);
  AT_DISPATCH_FLOATING_TYPES(A.scalar_type(), "gradient_of_B", [&] {
    gradient_of_B_rows<scalar_t>(A.data_ptr<scalar_t>(), G.data_ptr<scalar_t>(), dB.data_ptr<scalar_t>(), A.size(0));
  });
  return dB;
}
"""

extension = load_inline(
    name="tril_matmul_backward_openmp_cpu",
    cpp_sources=CPP_SOURCE,
    functions=["tril_matmul", "gradient_of_A", "gradient_of_B"],
    extra_cflags=["-O3", "-fopenmp", "-march=native"],
    extra_ldflags=["-fopenmp"],
)


class TrilMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(A, B)
        return extension.tril_matmul(A, B)

    @staticmethod
    def backward(ctx, G: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        A, B = ctx.saved_tensors
        G = G.contiguous()
        dA = extension.gradient_of_A(B, G) if ctx.needs_input_grad[0] else None
        dB = extension.gradient_of_B(A, G) if ctx.needs_input_grad[1] else None
        return dA, dB


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return TrilMatmul.apply(A, B)
