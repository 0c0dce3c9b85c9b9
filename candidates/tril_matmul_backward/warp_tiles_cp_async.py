"""C = tril(A @ B) and both gradients in square tiles through cp.async, each over its own triangle, longest first.

Over packed_accessor: the kernel of tril_matmul/warp_tiles_cp_async, written once for all three products. An operand
whose rows run along the sum is transposed on its way into shared memory, and G is cut to its triangle on its way.

    C  = A  B            terms: tile column .. tile row         order: the n-th diagonal from the corner has n + 1 tiles
    dA = tril(G) B^T            0 .. the lesser of the two      order: the n-th hook from the corner has 2 n + 1 tiles
    dB = A^T tril(G)            the greater of the two .. end

Limits: sm_80 or later; three launches.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <torch/types.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>

constexpr int kTile = 128;
constexpr int kDepth = 16;  // terms of a slice
constexpr int kStages = 3;
constexpr int kWarpRows = 64;
constexpr int kWarpColumns = 32;
constexpr int kBlocksPerProcessor = 2;
constexpr int kRows = kWarpRows / 8;  // of a thread's patch
constexpr int kColumns = kWarpColumns / 4;
constexpr int kThreads = 32 * (kTile / kWarpRows) * (kTile / kWarpColumns);

enum Product { kForward, kGradientOfA, kGradientOfB };

// How the two operands of a product lie: rows along the sum, [i][k], or across it, [k][i]; and whether one is cut to
// its lower triangle on the way.
template <Product kProduct>
struct Operands {
  static constexpr bool kLeftAlong = kProduct != kGradientOfB, kRightAlong = kProduct == kGradientOfA;
  static constexpr bool kLeftCut = kProduct == kGradientOfA, kRightCut = kProduct == kGradientOfB;
};

// Rows are padded where a warp's copies go to eight terms of four rows or columns.
template <bool kAlong>
using Slice = float[kDepth][kTile + (kAlong ? 4 : 0)];

template <Product kProduct>
struct Stage {
  Slice<Operands<kProduct>::kLeftAlong> left;
  Slice<Operands<kProduct>::kRightAlong> right;
};

// kWidth floats, of which the last come as zeros where fewer bytes are to be read.
template <int kWidth>
__device__ __forceinline__ void copy_async(float* to, const float* from, int bytes) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (kWidth == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
  }
}

// A thread's share of the copies of one operand, and what it is of the matrix: rows or columns first.. of the result,
// terms first_k..
template <int kVector, bool kRagged, bool kAlong, bool kCut>
struct Copies {
  static constexpr int kWidth = kAlong ? 1 : kVector;
  static constexpr int kStep = kAlong ? kThreads / 8 : kThreads * kWidth / kTile;  // in rows of the matrix
  const float* from;
  int64_t M;
  int row, column;

  __device__ Copies(const float* matrix, int side, int first, int first_k) : M(side) {
    const int at = threadIdx.x * kWidth;
    row = kAlong ? first + at / 8 : first_k + at / kTile;
    column = kAlong ? first_k + at % 8 : first + at % kTile;
    from = matrix + row * M + column;
  }

  __device__ __forceinline__ int bytes(int i, int j) const {
    int count = kWidth;
    if (kCut) count = max(0, min(kWidth, i - j + 1));
    if (kRagged && (i >= M || j >= M)) count = 0;
    return 4 * count;
  }

  // Starts the copies of one slice, and moves on to the next.
  __device__ __forceinline__ void start(Slice<kAlong>& slice) {
    if constexpr (kAlong) {
      float* to = &slice[threadIdx.x % 8][threadIdx.x / 8];
#pragma unroll
      for (int step = 0; step < kTile; step += kStep) {
#pragma unroll
        for (int k = 0; k < kDepth; k += 8) {
          copy_async<1>(to + k * (kTile + 4) + step, from + step * M + k, bytes(row + step, column + k));
        }
      }
      from += kDepth, column += kDepth;
    } else {
      float* to = &slice[0][0] + threadIdx.x * kWidth;
#pragma unroll
      for (int step = 0; step < kDepth; step += kStep) {
        copy_async<kWidth>(to + step * kTile, from + step * M, bytes(row + step, column));
      }
      from += kDepth * M, row += kDepth;
    }
  }
};

// A thread's values of one operand at one term of the sum: four neighbours, and again every 4 * kLanes.
template <int kLanes, int kCount>
__device__ __forceinline__ void read(const float* from, float (&value)[kCount]) {
#pragma unroll
  for (int n = 0; n < kCount; n += 4) {
    *reinterpret_cast<float4*>(value + n) = *reinterpret_cast<const float4*>(from + n * kLanes);
  }
}

template <Product kProduct, int kWidth, bool kRagged>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
product_kernel(const float* __restrict__ left, const float* __restrict__ right, float* __restrict__ result, int M) {
  using Layout = Operands<kProduct>;
  extern __shared__ __align__(16) char shared_bytes[];
  Stage<kProduct>* stages = reinterpret_cast<Stage<kProduct>*>(shared_bytes);

  const int number = blockIdx.x, tiles = (M + kTile - 1) / kTile;
  int tile_row, tile_column, first_k, last_k;
  if (kProduct == kForward) {
    int n = static_cast<int>((sqrtf(8.0f * number + 1.0f) - 1.0f) / 2.0f);
    while (n * (n + 1) / 2 > number) --n;
    while ((n + 1) * (n + 2) / 2 <= number) ++n;
    tile_column = number - n * (n + 1) / 2;
    tile_row = tiles - 1 - n + tile_column;
    first_k = tile_column * kTile, last_k = min((tile_row + 1) * kTile, M);
  } else {
    int n = static_cast<int>(sqrtf(static_cast<float>(number)));
    while (n * n > number) --n;
    while ((n + 1) * (n + 1) <= number) ++n;
    // A hook: the corner and n tiles along the row, then n along the column.
    const int along = number - n * n;
    const int from_corner_row = along <= n ? 0 : along - n, from_corner_column = along <= n ? along : 0;
    if (kProduct == kGradientOfA) {
      tile_row = tiles - 1 - n + from_corner_row, tile_column = tiles - 1 - n + from_corner_column;
      first_k = 0, last_k = min((min(tile_row, tile_column) + 1) * kTile, M);
    } else {
      tile_row = n - from_corner_row, tile_column = n - from_corner_column;
      first_k = n * kTile, last_k = M;
    }
  }
  const int first_i = tile_row * kTile, first_j = tile_column * kTile;
  const int slices = (last_k - first_k + kDepth - 1) / kDepth;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp / (kTile / kWarpColumns) * kWarpRows;
  const int warp_column = warp % (kTile / kWarpColumns) * kWarpColumns;
  const int row = warp_row + 4 * (lane / 2 % 8), column = warp_column + 4 * (lane % 2 + lane / 16 * 2);

  Copies<kWidth, kRagged, Layout::kLeftAlong, Layout::kLeftCut> copies_of_left(left, M, first_i, first_k);
  Copies<kWidth, kRagged, Layout::kRightAlong, Layout::kRightCut> copies_of_right(right, M, first_j, first_k);
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < slices) copies_of_left.start(stages[s].left), copies_of_right.start(stages[s].right);
    asm volatile("cp.async.commit_group;");
  }
  if (kProduct == kForward && first_i > first_j) {
    for (int at = threadIdx.x; at < kTile * kTile; at += kThreads) {
      const int i = first_j + at / kTile, j = first_i + at % kTile;
      if (i < M && j < M) __stcs(result + static_cast<int64_t>(i) * M + j, 0.0f);
    }
  }

  float sum[kRows][kColumns] = {};
  int stage = 0;
  for (int slice = 0; slice < slices; ++slice) {
    const int k = first_k + slice * kDepth;
    asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
    __syncthreads();  // this slice has arrived, and the stage filled next has been read by all
    if (slice + kStages - 1 < slices) {
      Stage<kProduct>& next = stages[stage == 0 ? kStages - 1 : stage - 1];
      copies_of_left.start(next.left), copies_of_right.start(next.right);
    }
    asm volatile("cp.async.commit_group;");
    // Whether a term of this slice counts for the warp.
    const int i = first_i + warp_row, j = first_j + warp_column;
    const bool any = kProduct == kForward       ? k + kDepth > j && k < i + kWarpRows
                     : kProduct == kGradientOfA ? k < min(i + kWarpRows, j + kWarpColumns)
                                                : k + kDepth > max(i, j);
    if (any) {
#pragma unroll
      for (int t = 0; t < kDepth; ++t) {
        float a[kRows], b[kColumns];
        read<8, kRows>(&stages[stage].left[t][row], a);
        read<4, kColumns>(&stages[stage].right[t][column], b);
        // Up one column and down the next: each product shares an operand with the one before.
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
#pragma unroll
          for (int d = 0; d < kRows; ++d) {
            const int r = c % 2 ? kRows - 1 - d : d;
            sum[r][c] = fmaf(a[r], b[c], sum[r][c]);
          }
        }
      }
    }
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int i = first_i + row + r / 4 * 32 + r % 4;
    if (i >= M) break;
#pragma unroll
    for (int c = 0; c < kColumns; c += 4) {
      const int j = first_j + column + 4 * c;
      float four[4];
#pragma unroll
      for (int d = 0; d < 4; ++d) four[d] = kProduct == kForward && i < j + d ? 0.0f : sum[r][c + d];
      float* to = result + static_cast<int64_t>(i) * M + j;
      if constexpr (kWidth == 4) {
        if (j < M) __stcs(reinterpret_cast<float4*>(to), make_float4(four[0], four[1], four[2], four[3]));
      } else {
#pragma unroll
        for (int d = 0; d < 4; ++d) {
          if (j + d < M) to[d] = four[d];
        }
      }
    }
  }
}

template <Product kProduct, int kWidth, bool kRagged>
static void launch(const torch::Tensor& left, const torch::Tensor& right, torch::Tensor& result) {
  constexpr int kBytes = kStages * sizeof(Stage<kProduct>);
  const auto kernel = product_kernel<kProduct, kWidth, kRagged>;
  C10_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  const int M = static_cast<int>(left.size(0));
  const unsigned tiles = (M + kTile - 1) / kTile;
  const unsigned blocks = kProduct == kForward ? tiles * (tiles + 1) / 2 : tiles * tiles;
  kernel<<<blocks, kThreads, kBytes, c10::cuda::getCurrentCUDAStream()>>>(
      left.data_ptr<float>(), right.data_ptr<float>(), result.data_ptr<float>(), M);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

template <Product kProduct>
static torch::Tensor product(const torch::Tensor& left, const torch::Tensor& right, const char* names) {
  TORCH_CHECK(left.is_cuda() && right.is_cuda() && left.device() == right.device(), names,
              " must be CUDA tensors of one device");
  TORCH_CHECK(left.scalar_type() == torch::kFloat32 && right.scalar_type() == torch::kFloat32, names,
              " must be float32");
  TORCH_CHECK(left.dim() == 2 && left.size(0) == left.size(1) && right.sizes() == left.sizes(), names,
              " must be square and of the same size");
  TORCH_CHECK(left.is_contiguous() && right.is_contiguous(), names, " must be contiguous");
  const int64_t M = left.size(0);
  TORCH_CHECK(M <= 32768LL * kTile, "M is too large for this grid: ", M);

  const c10::cuda::CUDAGuard guard(left.device());
  auto result = torch::empty({M, M}, left.options());
  if (M == 0) return result;
  const auto aligned = [](const torch::Tensor& X) { return reinterpret_cast<uintptr_t>(X.data_ptr()) % 16 == 0; };
  if (M % 4 != 0 || !aligned(left) || !aligned(right) || !aligned(result)) {
    launch<kProduct, 1, true>(left, right, result);
  } else if (M % kTile != 0) {
    launch<kProduct, 4, true>(left, right, result);
  } else {
    launch<kProduct, 4, false>(left, right, result);
  }
  return result;
}

torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B) {
  return product<kForward>(A, B, "A and B");
}

torch::Tensor gradient_of_A(const torch::Tensor& G, const torch::Tensor& B) {
  return product<kGradientOfA>(G, B, "G and B");
}

torch::Tensor gradient_of_B(const torch::Tensor& A, const torch::Tensor& G) {
  return product<kGradientOfB>(A, G, "A and G");
}
"""

CPP_SOURCE = """
torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B);
torch::Tensor gradient_of_A(const torch::Tensor& G, const torch::Tensor& B);
torch::Tensor gradient_of_B(const torch::Tensor& A, const torch::Tensor& G);
"""

extension = load_inline(
    name="tril_matmul_backward_warp_tiles_cp_async",
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
        G = G.contiguous()
        dA = extension.gradient_of_A(G, B) if ctx.needs_input_grad[0] else None
        dB = extension.gradient_of_B(A, G) if ctx.needs_input_grad[1] else None
        return dA, dB


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return TrilMatmul.apply(A, B)
