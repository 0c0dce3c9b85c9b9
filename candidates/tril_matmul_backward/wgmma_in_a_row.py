"""C = tril(A @ B) and both gradients with wgmma at fp32 accuracy, each product over its own triangle.

Over wgmma_persistent: the loop of tril_matmul/wgmma_in_a_row, in which the tensor cores always have a group of products
to do, in rows of 8 steps. The two groups of warps run freely then, and take no turns.

    C  = A  B            steps: tile column .. tile row
    dA = tril(G) B^T            0 .. the lesser of the two
    dB = A^T tril(G)            the greater of the two .. end

Limits: sm_90a only; A and B are laid out anew for each product.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

constexpr int kStages = 3;
constexpr int kTile = 128;         // rows of A, columns of B
constexpr int kDepth = 64;         // of k in an image of a tile
constexpr int kImageBytes = 32768;
constexpr int kInARow = 8;       // steps of k between two moments at which the tensor cores have nothing to do

template <int count>
struct Count { static constexpr int value = count; };

// Writes the image of one tile of a lower triangular matrix and 1/scale, or NaN where two halves do not hold some
// element to 2^-22 of itself. `along_k`: the sum runs along its rows (matrix[line][k]), otherwise down its columns
// (matrix[k][line]). Above the diagonal nothing is read: G is cut to its triangle here. `wide`: 16 bytes at a time.
template <bool along_k>
__device__ __forceinline__ void split_tile(const float* __restrict__ matrix, int64_t M, bool wide, int first_line,
                                           int first_k, uint4* __restrict__ image, float* __restrict__ unscale,
                                           uint4* __restrict__ staged) {
  __shared__ unsigned largest_of_warp[8];
  const int thread = threadIdx.x;
  float value[4][8];
  unsigned largest = 0;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const int line = first_line + (along_k ? thread / 8 + 32 * part : thread % 128);
    const int k = first_k + 8 * (along_k ? thread % 8 : thread / 128 + 2 * part);
    if (along_k && wide) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (line < M && k + 4 * half <= line) {
          four = __ldg(reinterpret_cast<const float4*>(matrix + line * M + k + 4 * half));
        }
        value[part][4 * half] = four.x;
        value[part][4 * half + 1] = k + 4 * half + 1 <= line ? four.y : 0.0f;
        value[part][4 * half + 2] = k + 4 * half + 2 <= line ? four.z : 0.0f;
        value[part][4 * half + 3] = k + 4 * half + 3 <= line ? four.w : 0.0f;
      }
    } else {
#pragma unroll
      for (int q = 0; q < 8; ++q) {
        const int row = along_k ? line : k + q;
        const int column = along_k ? k + q : line;
        value[part][q] = row < M && column <= row ? __ldg(matrix + row * M + column) : 0.0f;
      }
    }
#pragma unroll
    for (int q = 0; q < 8; ++q) largest = max(largest, __float_as_uint(value[part][q]) & 0x7fffffffu);
  }
  largest = __reduce_max_sync(0xffffffffu, largest);
  if (thread % 32 == 0) largest_of_warp[thread / 32] = largest;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < 8; ++warp) largest = max(largest, largest_of_warp[warp]);

  // The largest element comes to lie in [2^14, 2^15). Exponents are biased by 127.
  const int exponent = largest == 0 ? 127 : static_cast<int>(largest >> 23);
  bool bad = exponent < 127 - 40 || exponent > 127 + 60;
  const float scale = __uint_as_float(static_cast<unsigned>(min(max(268 - exponent, 1), 254)) << 23);
#pragma unroll
  for (int part = 0; part < 4; ++part) {
    const int line = along_k ? thread / 8 + 32 * part : thread % 128;
    const int chunk = along_k ? thread % 8 : thread / 128 + 2 * part;
    __align__(16) __half high[8];
    __align__(16) __half low[8];
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      const float scaled = value[part][q] * scale;
      high[q] = __float2half_rn(scaled);
      const float rest = (scaled - __half2float(high[q])) * 2048.0f;
      low[q] = __float2half_rn(rest);
      bad |= !(fabsf(rest - __half2float(low[q])) <= fabsf(scaled) * 0x1p-11f);
    }
    const int row = chunk / 4 * 1024 + line * 8;
    staged[row + ((chunk % 4) ^ (line % 8))] = *reinterpret_cast<const uint4*>(high);
    staged[row + ((chunk % 4 + 4) ^ (line % 8))] = *reinterpret_cast<const uint4*>(low);
  }
  const bool any_bad = __syncthreads_or(bad);
#pragma unroll
  for (int step = 0; step < kImageBytes / 16 / 256; ++step) {
    image[step * 256 + thread] = staged[step * 256 + thread];
  }
  if (thread == 0) {
    *unscale = any_bad ? __uint_as_float(0x7fffffffu) : __uint_as_float(static_cast<unsigned>(exponent - 14) << 23);
  }
}

// C = A B, dA = G B^T, dB = A^T G, each as left * right.
enum Product { kForward, kGradientOfA, kGradientOfB };

template <Product product>
__global__ void __launch_bounds__(256)
split_kernel(const float* __restrict__ left, const float* __restrict__ right, uint4* __restrict__ images,
             float* __restrict__ unscales, int* __restrict__ taken, int M, bool wide) {
  asm volatile("griddepcontrol.launch_dependents;");
  if (blockIdx.x + blockIdx.y + blockIdx.z + threadIdx.x == 0) *taken = 0;
  __shared__ uint4 staged[kImageBytes / 16];
  const int step = blockIdx.x, tile = blockIdx.y, steps = gridDim.x, tiles = gridDim.y;
  const bool of_right = blockIdx.z == 1;
  const bool along_k = product == kGradientOfA || (product == kForward && !of_right);
  // Images above the diagonal are never looked at.
  if (along_k ? step * kDepth >= (tile + 1) * kTile : (step + 1) * kDepth <= tile * kTile) return;
  const int64_t at = static_cast<int64_t>((of_right ? tiles : 0) + tile) * steps + step;
  uint4* image = images + at * (kImageBytes / 16);
  const float* matrix = of_right ? right : left;
  if (along_k) {
    split_tile<true>(matrix, M, wide, tile * kTile, step * kDepth, image, unscales + at, staged);
  } else {
    split_tile<false>(matrix, M, wide, tile * kTile, step * kDepth, image, unscales + at, staged);
  }
}

// A tile of the result and its steps of k, those with the most first. C: the n-th diagonal from the corner below has
// n + 1 tiles; dA, dB: the n-th hook around a corner has 2 n + 1.
struct Place {
  int row, column, first_step, last_step;
};

template <Product product>
__device__ __forceinline__ Place place_of(int number, int tiles) {
  if (product == kForward) {
    int diagonal = static_cast<int>((sqrtf(8.0f * number + 1.0f) - 1.0f) * 0.5f);
    while (diagonal * (diagonal + 1) / 2 > number) --diagonal;
    while ((diagonal + 1) * (diagonal + 2) / 2 <= number) ++diagonal;
    const int column = number - diagonal * (diagonal + 1) / 2;
    const int row = column + tiles - 1 - diagonal;
    return {row, column, 2 * column, 2 * row + 2};
  }
  int hook = static_cast<int>(sqrtf(static_cast<float>(number)));
  while (hook * hook > number) --hook;
  while ((hook + 1) * (hook + 1) <= number) ++hook;
  const int along = number - hook * hook;  // first along the row, then down the column
  const int row = along <= hook ? hook : 2 * hook - along;
  const int column = along <= hook ? along : hook;
  if (product == kGradientOfB) return {row, column, 2 * hook, 2 * tiles};
  return {tiles - 1 - row, tiles - 1 - column, 0, 2 * (tiles - 1 - hook) + 2};
}

// Zeros for the tile's mirror image above the diagonal, by `threads` threads of which this is number `thread`.
__device__ __forceinline__ void write_zeros(float* __restrict__ C, int M, int tile_row, int tile_column, int thread,
                                            int threads) {
  const int height = min(kTile, M - tile_column * kTile);
  const int width = min(kTile, M - tile_row * kTile);
  for (int row = thread / 32; row < height; row += threads / 32) {
    float* line = C + static_cast<int64_t>(tile_column * kTile + row) * M + tile_row * kTile;
    if (width == kTile && M % 4 == 0) {
      reinterpret_cast<float4*>(line)[thread % 32] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    } else {
      for (int column = thread % 32; column < width; column += 32) line[column] = 0.0f;
    }
  }
}

// Elements (i, j) and (i, j + 1), j even; above the diagonal of C they become zero.
template <Product product>
__device__ __forceinline__ void store_pair(float* __restrict__ C, int M, int i, int j, float left, float right) {
  if (i >= M) return;
  float* target = C + static_cast<int64_t>(i) * M + j;
  if (product == kForward && j > i) left = 0.0f;
  if (product == kForward && j + 1 > i) right = 0.0f;
  if (M % 2 == 0 && j < M) {
    *reinterpret_cast<float2*>(target) = make_float2(left, right);
  } else {
    if (j < M) target[0] = left;
    if (j + 1 < M) target[1] = right;
  }
}

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\nbra again;\nover:\n}\n" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void bulk_load(unsigned target, const void* source, int bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
               "l"(source), "r"(bytes), "r"(barrier)
               : "memory");
}

// A place in a ring of barriers, and how often the ring has gone round.
struct Turn {
  int place, round;
  __device__ __forceinline__ void advance(int places) {
    if (++place == places) place = 0, ++round;
  }
};

// This kernel starts while the last blocks of the split pass still run.
__device__ __forceinline__ void wait_for_images() {
  asm volatile("griddepcontrol.wait;\nfence.proxy.async;" ::: "memory");
}

// Rows of 128 bytes, swizzled by 128: eight rows are 1024 bytes apart from the next eight.
__device__ __forceinline__ uint64_t descriptor_of(unsigned address) {
  return (uint64_t{1} << 62) | (uint64_t{64} << 32) | (uint64_t{1} << 16) | (address >> 4);
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

#define FOUR(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define EIGHT(d, i) FOUR(d, i), FOUR(d, i + 4)

// Waits until at most `left` groups still run. `sum` passes through, so that no read of it moves up past the wait.
template <int left>
__device__ __forceinline__ void wgmma_wait(float (&sum)[64]) {
  asm volatile("wgmma.wait_group.sync.aligned %64;\n"
               : EIGHT(sum, 0), EIGHT(sum, 8), EIGHT(sum, 16), EIGHT(sum, 24), EIGHT(sum, 32), EIGHT(sum, 40),
                 EIGHT(sum, 48), EIGHT(sum, 56)
               : "n"(left)
               : "memory");
}

// sum (64 x 128, over the four warps) = A (64 x 16) * B (16 x 128) + (onto ? sum : 0).
__device__ __forceinline__ void wgmma_64x128x16(float (&sum)[64], uint64_t a, uint64_t b, int onto) {
  asm volatile(
      "{\n.reg .pred onto;\nsetp.ne.b32 onto, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, onto, 1, 1, 0, 0;\n}\n"
      : EIGHT(sum, 0), EIGHT(sum, 8), EIGHT(sum, 16), EIGHT(sum, 24), EIGHT(sum, 32), EIGHT(sum, 40), EIGHT(sum, 48),
        EIGHT(sum, 56)
      : "l"(a), "l"(b), "r"(onto));
}

// The two products of high halves of 64 of k, in two images of 32; then the four of a high with a low one.
__device__ __forceinline__ void multiply_high(float (&sum)[64], unsigned a, unsigned b) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int at = k / 2 * 16384 + k % 2 * 32;
    wgmma_64x128x16(sum, descriptor_of(a + at), descriptor_of(b + at), k != 0);
  }
}

__device__ __forceinline__ void multiply_across(float (&sum)[64], unsigned a, unsigned b) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int at = k / 2 * 16384 + k % 2 * 32;
    wgmma_64x128x16(sum, descriptor_of(a + at), descriptor_of(b + at + 64), k != 0);
    wgmma_64x128x16(sum, descriptor_of(a + at + 64), descriptor_of(b + at), 1);
  }
}

// Adds a sum that the tensor cores made, and truncated, to one in ordinary registers.
__device__ __forceinline__ void promote(float (&total)[64], const float (&sum)[64], float factor) {
#pragma unroll
  for (int at = 0; at < 64; ++at) total[at] = fmaf(sum[at], factor, total[at]);
}

// Two halves miss up to 2^-23 of a value, and nothing averages that out over a few products: these are done in fp32.
constexpr int kShortest = 64;
constexpr int kStep = 16;
constexpr int kPlainFloats = 2 * kStep * (kTile + 4);

// A tile of C in plain fp32, one 8 x 8 patch for each of 256 threads: right on every input.
template <Product product>
__device__ __noinline__ void plain_tile(const float* __restrict__ left, const float* __restrict__ right,
                                        float* __restrict__ C, int M, Place place, float* shared, int thread) {
  const int first_i = place.row * kTile, first_j = place.column * kTile;
  using Tile = float[kStep][kTile + 4];
  Tile& tile_a = *reinterpret_cast<Tile*>(shared);
  Tile& tile_b = *reinterpret_cast<Tile*>(shared + kStep * (kTile + 4));
  float sum[8][8] = {};
  for (int start = place.first_step * kDepth; start < min(place.last_step * kDepth, M); start += kStep) {
    asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
    for (int step = 0; step < kStep * kTile / 256; ++step) {
      const int at = step * 256 + thread;
      const int line = at % kTile;
      const int k = start + at / kTile;
      const int64_t row_of_left = product == kGradientOfB ? k : first_i + line;
      const int64_t column_of_left = product == kGradientOfB ? first_i + line : k;
      const int64_t row_of_right = product == kGradientOfA ? first_j + line : k;
      const int64_t column_of_right = product == kGradientOfA ? k : first_j + line;
      const bool in_left = row_of_left < M && column_of_left <= row_of_left;
      const bool in_right = row_of_right < M && column_of_right <= row_of_right;
      tile_a[at / kTile][line] = in_left ? left[row_of_left * M + column_of_left] : 0.0f;
      tile_b[at / kTile][line] = in_right ? right[row_of_right * M + column_of_right] : 0.0f;
    }
    asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
    for (int k = 0; k < kStep; ++k) {
      float a[8], b[8];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float4 of_a = *reinterpret_cast<const float4*>(&tile_a[k][64 * half + thread / 16 * 4]);
        const float4 of_b = *reinterpret_cast<const float4*>(&tile_b[k][64 * half + thread % 16 * 4]);
        a[4 * half] = of_a.x, a[4 * half + 1] = of_a.y, a[4 * half + 2] = of_a.z, a[4 * half + 3] = of_a.w;
        b[4 * half] = of_b.x, b[4 * half + 1] = of_b.y, b[4 * half + 2] = of_b.z, b[4 * half + 3] = of_b.w;
      }
#pragma unroll
      for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int c = 0; c < 8; ++c) sum[r][c] = fmaf(a[r], b[c], sum[r][c]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int i = first_i + r / 4 * 64 + thread / 16 * 4 + r % 4;
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const int j = first_j + c / 4 * 64 + thread % 16 * 4 + c % 4;
      if (i < M && j < M) {
        C[static_cast<int64_t>(i) * M + j] = product != kForward || i >= j ? sum[r][c] : 0.0f;
      }
    }
  }
}

template <Product product>
__global__ void __launch_bounds__(384, 1)
wgmma_kernel(const float* __restrict__ left, const float* __restrict__ right,
             const unsigned char* __restrict__ images, const float* __restrict__ unscales, float* __restrict__ C,
             int* __restrict__ taken, int M, int tiles) {
  extern __shared__ __align__(1024) unsigned char stages[];
  __shared__ __align__(16) float plain[kPlainFloats];
  __shared__ __align__(8) uint64_t full[kStages], empty[kStages], announced[2], heard[2];
  __shared__ int announcement[2];

  const int steps = 2 * tiles, all = product == kForward ? tiles * (tiles + 1) / 2 : tiles * tiles;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(shared_address(&full[stage]), 1);
      barrier_init(shared_address(&empty[stage]), 8);
    }
    for (int slot = 0; slot < 2; ++slot) {
      barrier_init(shared_address(&announced[slot]), 1);
      barrier_init(shared_address(&heard[slot]), 11);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  // The tiles that this block takes, one after the other: a thread draws them and tells the eleven working warps.
  Turn turn = {0, 0};
  const auto next_tile = [&](Place* place) {
    barrier_wait(shared_address(&announced[turn.place]), turn.round & 1);
    const int number = announcement[turn.place];
    __syncwarp();
    if (lane == 0) barrier_arrive(shared_address(&heard[turn.place]));
    turn.advance(2);
    if (number < all) *place = place_of<product>(number, tiles);
    return number < all;
  };

  Place place;
  if (warp < 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      Turn stage = {0, 0};
      for (int number = blockIdx.x;;) {
        barrier_wait(shared_address(&heard[turn.place]), (turn.round & 1) ^ 1);
        announcement[turn.place] = number;
        barrier_arrive(shared_address(&announced[turn.place]));
        turn.advance(2);
        if (number >= all) break;
        wait_for_images();
        place = place_of<product>(number, tiles);
        number = gridDim.x + atomicAdd(taken, 1);
        const unsigned char* of_a = images + static_cast<int64_t>(place.row) * steps * kImageBytes;
        const unsigned char* of_b = images + static_cast<int64_t>(tiles + place.column) * steps * kImageBytes;
        for (int step = place.first_step; step < place.last_step; ++step) {
          barrier_wait(shared_address(&empty[stage.place]), (stage.round & 1) ^ 1);
          const unsigned barrier = shared_address(&full[stage.place]);
          const unsigned target = shared_address(stages + stage.place * 2 * kImageBytes);
          barrier_expect(barrier, 2 * kImageBytes);
          bulk_load(target, of_a + static_cast<int64_t>(step) * kImageBytes, kImageBytes, barrier);
          bulk_load(target + kImageBytes, of_b + static_cast<int64_t>(step) * kImageBytes, kImageBytes, barrier);
          stage.advance(kStages);
        }
      }
    } else if (warp > 0) {
      while (next_tile(&place)) {
        if (product != kForward || place.row == place.column) continue;
        write_zeros(C, M, place.row, place.column, threadIdx.x - 32, 96);
      }
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    wait_for_images();
    const int half = warp / 4 - 1;  // rows 0..63 or 64..127 of the tile
    Turn stage = {0, 0};
    while (next_tile(&place)) {
      const float* unscales_a = unscales + place.row * steps;
      const float* unscales_b = unscales + (tiles + place.column) * steps;
      float total[64] = {}, high[64], across[64];
      // NaN marks an image that does not hold its block; then the whole tile is done in plain fp32.
      bool marked = M < kShortest;
      // In a row of steps a group of products is under way while the sum of the one before it moves.
      const auto steps_in_a_row = [&](int step, auto count_of) {
        constexpr int count = decltype(count_of)::value;
        unsigned at_a = shared_address(stages + stage.place * 2 * kImageBytes) + half * 8192;
        unsigned at_b = shared_address(stages + stage.place * 2 * kImageBytes) + kImageBytes;
        barrier_wait(shared_address(&full[stage.place]), stage.round & 1);
        wgmma_fence();
        multiply_high(high, at_a, at_b);
        wgmma_commit();
#pragma unroll
        for (int at = 0; at < count; ++at) {
          const float factor = __ldg(unscales_a + step + at) * __ldg(unscales_b + step + at);
          marked |= isnan(factor);
          const unsigned done = shared_address(&empty[stage.place]);
          wgmma_fence();
          multiply_across(across, at_a, at_b);
          wgmma_commit();
          stage.advance(kStages);
          wgmma_wait<1>(high);
          promote(total, high, factor);
          if (at + 1 < count) {
            at_a = shared_address(stages + stage.place * 2 * kImageBytes) + half * 8192;
            at_b = shared_address(stages + stage.place * 2 * kImageBytes) + kImageBytes;
            barrier_wait(shared_address(&full[stage.place]), stage.round & 1);
            wgmma_fence();
            multiply_high(high, at_a, at_b);
            wgmma_commit();
            wgmma_wait<1>(across);
          } else {
            wgmma_wait<0>(across);
          }
          if (lane == 0) barrier_arrive(done);
          promote(total, across, factor * 0x1p-11f);
        }
      };
      int step = place.first_step;
      for (; step + kInARow <= place.last_step; step += kInARow) steps_in_a_row(step, Count<kInARow>());
      for (; step < place.last_step; step += 2) steps_in_a_row(step, Count<2>());

      if (marked) {
        plain_tile<product>(left, right, C, M, place, plain, threadIdx.x - 128);
        continue;
      }
      const int i = place.row * kTile + half * 64 + warp % 4 * 16 + lane / 4;
      const int j = place.column * kTile + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < 16; ++n) {
        store_pair<product>(C, M, i, j + 8 * n, total[4 * n], total[4 * n + 1]);
        store_pair<product>(C, M, i + 8, j + 8 * n, total[4 * n + 2], total[4 * n + 3]);
      }
    }
  }
}

template <Product product>
static cudaError_t launch_product(const float* left, const float* right, float* C, unsigned char* images,
                                  float* unscales, int M, cudaStream_t stream) {
  const int tiles = (M + kTile - 1) / kTile;
  const bool wide = M % 4 == 0 && (reinterpret_cast<uintptr_t>(left) | reinterpret_cast<uintptr_t>(right)) % 16 == 0;
  int* taken = reinterpret_cast<int*>(unscales + static_cast<int64_t>(4) * tiles * tiles);
  constexpr int kShared = kStages * 2 * kImageBytes;
  cudaError_t refused =
      cudaFuncSetAttribute(wgmma_kernel<product>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (refused != cudaSuccess) return refused;
  int device, processors;
  if ((refused = cudaGetDevice(&device)) != cudaSuccess) return refused;
  refused = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (refused != cudaSuccess) return refused;

  split_kernel<product><<<dim3(2 * tiles, tiles, 2), 256, 0, stream>>>(left, right, reinterpret_cast<uint4*>(images),
                                                                       unscales, taken, M, wide);
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = std::min(product == kForward ? tiles * (tiles + 1) / 2 : tiles * tiles, processors);
  config.blockDim = 384;
  config.dynamicSmemBytes = kShared;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  refused = cudaLaunchKernelEx(&config, wgmma_kernel<product>, left, right, static_cast<const unsigned char*>(images),
                               static_cast<const float*>(unscales), C, taken, M, tiles);
  return refused != cudaSuccess ? refused : cudaGetLastError();
}

// `product` 0: C = left right; 1: dA = left right^T with G on the left; 2: dB = left^T right with G on the right.
// `images` holds kImageBytes for each of 4 * tiles * tiles blocks, `unscales` as many floats and one more.
cudaError_t launch(int product, const float* left, const float* right, float* C, unsigned char* images,
                   float* unscales, int M, cudaStream_t stream) {
  const auto chosen = product == kForward       ? launch_product<kForward>
                      : product == kGradientOfA ? launch_product<kGradientOfA>
                                                : launch_product<kGradientOfB>;
  return chosen(left, right, C, images, unscales, M, stream);
}
"""

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

cudaError_t launch(int product, const float* left, const float* right, float* C, unsigned char* images,
                   float* unscales, int M, cudaStream_t stream);

static torch::Tensor multiply(int product, const torch::Tensor& left, const torch::Tensor& right) {
  TORCH_CHECK(left.is_cuda() && right.is_cuda(), "all matrices must be CUDA tensors");
  TORCH_CHECK(left.device() == right.device(), "all matrices must be on the same device");
  TORCH_CHECK(left.scalar_type() == torch::kFloat32 && right.scalar_type() == torch::kFloat32,
              "all matrices must be float32");
  TORCH_CHECK(left.dim() == 2 && right.dim() == 2, "A, B and the gradient of C must be matrices");
  TORCH_CHECK(left.is_contiguous() && right.is_contiguous(), "all matrices must be contiguous");
  const int64_t M = left.size(0);
  TORCH_CHECK(left.size(1) == M && right.size(0) == M && right.size(1) == M,
              "all matrices must be square and of the same size");
  TORCH_CHECK(M <= 4000000, "M is too large for this grid: ", M);

  const c10::cuda::CUDAGuard guard(left.device());
  auto C = torch::empty({M, M}, left.options());
  if (M == 0) return C;
  const int64_t blocks = 4 * ((M + 127) / 128) * ((M + 127) / 128);
  auto images = torch::empty({blocks * 32768}, left.options().dtype(torch::kUInt8));
  auto unscales = torch::empty({blocks + 1}, left.options());
  C10_CUDA_CHECK(launch(product, left.data_ptr<float>(), right.data_ptr<float>(), C.data_ptr<float>(),
                        images.data_ptr<uint8_t>(), unscales.data_ptr<float>(), static_cast<int>(M),
                        c10::cuda::getCurrentCUDAStream()));
  return C;
}

torch::Tensor tril_matmul(const torch::Tensor& A, const torch::Tensor& B) { return multiply(0, A, B); }
torch::Tensor gradient_of_A(const torch::Tensor& B, const torch::Tensor& G) { return multiply(1, G, B); }
torch::Tensor gradient_of_B(const torch::Tensor& A, const torch::Tensor& G) { return multiply(2, A, G); }
"""

extension = load_inline(
    name="tril_matmul_backward_wgmma_in_a_row",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["tril_matmul", "gradient_of_A", "gradient_of_B"],
    no_implicit_headers=True,
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
