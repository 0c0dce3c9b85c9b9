"""C = tril(A @ B) and both gradients, one thread per element, through packed accessors and for float and double.

The idea that circulates, made right: a 2-D grid for all three kernels, sums over the range where both factors are not
zero, each element of a gradient written by one thread alone (no +=, so no race), and both gradients returned from a
torch.autograd.Function.

    C[i, j] = sum over k = j..i            dA[i, k] = sum over j = 0..min(i, k) of G[i, j] B[k, j]
                                           dB[k, j] = sum over i = max(k, j)..M-1 of A[i, k] G[i, j]

Limits: 32-bit indices (M up to 46,340); nothing is kept on the chip, and dA reads B across its rows.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

constexpr int kEdge = 16;

template <typename T>
using Matrix = torch::PackedTensorAccessor32<T, 2, torch::RestrictPtrTraits>;

template <typename T>
__global__ void forward_kernel(const Matrix<T> A, const Matrix<T> B, Matrix<T> C) {
  const int j = blockIdx.x * kEdge + threadIdx.x, i = blockIdx.y * kEdge + threadIdx.y;
  if (i >= C.size(0) || j >= C.size(1)) return;
  T sum = 0;
  for (int k = j; k <= i; ++k) sum += A[i][k] * B[k][j];
  C[i][j] = sum;
}

template <typename T>
__global__ void gradient_of_A_kernel(const Matrix<T> B, const Matrix<T> G, Matrix<T> dA) {
  const int k = blockIdx.x * kEdge + threadIdx.x, i = blockIdx.y * kEdge + threadIdx.y;
  if (i >= dA.size(0) || k >= dA.size(1)) return;
  const int last = i < k ? i : k;
  T sum = 0;
  for (int j = 0; j <= last; ++j) sum += G[i][j] * B[k][j];
  dA[i][k] = sum;
}

template <typename T>
__global__ void gradient_of_B_kernel(const Matrix<T> A, const Matrix<T> G, Matrix<T> dB) {
  const int j = blockIdx.x * kEdge + threadIdx.x, k = blockIdx.y * kEdge + threadIdx.y;
  if (k >= dB.size(0) || j >= dB.size(1)) return;
  const int first = k > j ? k : j;
  T sum = 0;
  for (int i = first; i < dB.size(0); ++i) sum += A[i][k] * G[i][j];
  dB[k][j] = sum;
}

static void check(const torch::Tensor& X, const torch::Tensor& Y, const char* names) {
  TORCH_CHECK(X.is_cuda() && Y.is_cuda() && X.device() == Y.device(), names, " must be CUDA tensors of one device");
  TORCH_CHECK(X.scalar_type() == Y.scalar_type(), names, " must be of the same dtype");
  TORCH_CHECK(X.dim() == 2 && Y.dim() == 2 && X.size(0) == X.size(1) && X.sizes() == Y.sizes(), names,
              " must be square and of the same size");
  TORCH_CHECK(X.size(0) <= 46340, "32-bit indices reach to 46340 rows, not to ", X.size(0));
}

#define ONE_THREAD_EACH(kernel, X, Y, result)                                                                \
  const c10::cuda::CUDAGuard guard(X.device());                                                              \
  const unsigned blocks = static_cast<unsigned>((X.size(0) + kEdge - 1) / kEdge);                            \
  if (blocks == 0) return result;                                                                            \
  AT_DISPATCH_FLOATING_TYPES(X.scalar_type(), #kernel, [&] {                                                 \
    kernel<scalar_t><<<dim3(blocks, blocks), dim3(kEdge, kEdge), 0, c10::cuda::getCurrentCUDAStream()>>>(    \
        X.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),                                        \
        Y.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(),                                        \
        result.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>());                                  \
  });                                                                                                        \
  C10_CUDA_KERNEL_LAUNCH_CHECK();                                                                            \
  return result;

torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B) {
  check(A, B, "A and B");
  auto C = torch::empty(A.sizes(), A.options());
  ONE_THREAD_EACH(forward_kernel, A, B, C)
}

torch::Tensor gradient_of_A(const torch::Tensor& B, const torch::Tensor& G) {
  check(B, G, "B and G");
  auto dA = torch::empty(B.sizes(), B.options());
  ONE_THREAD_EACH(gradient_of_A_kernel, B, G, dA)
}

torch::Tensor gradient_of_B(const torch::Tensor& A, const torch::Tensor& G) {
  check(A, G, "A and G");
  auto dB = torch::empty(A.sizes(), A.options());
  ONE_THREAD_EACH(gradient_of_B_kernel, A, G, dB)
}
"""

CPP_SOURCE = """
torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B);
torch::Tensor gradient_of_A(const torch::Tensor& B, const torch::Tensor& G);
torch::Tensor gradient_of_B(const torch::Tensor& A, const torch::Tensor& G);
"""

extension = load_inline(
    name="tril_matmul_backward_packed_accessor",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["tril_matmul", "gradient_of_A", "gradient_of_B"],
)


class TrilMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(A, B)
        return extension.tril_matmul(A, B)

    @staticmethod
    def backward(ctx, G: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        A, B = ctx.saved_tensors
        dA = extension.gradient_of_A(B, G) if ctx.needs_input_grad[0] else None
        dB = extension.gradient_of_B(A, G) if ctx.needs_input_grad[1] else None
        return dA, dB


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return TrilMatmul.apply(A, B)
