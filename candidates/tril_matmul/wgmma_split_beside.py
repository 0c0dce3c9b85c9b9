"""C = tril(A @ B) with wgmma at fp32 accuracy, in one kernel: three warps of each block split what all blocks multiply.

Over wgmma_persistent: no pass before the product. The warps that only wrote zeros draw images from a list, in the order in
which they are needed, and split them while the others multiply; the scale of an image says that it is there. All tiles
begin at the same k, in the middle of the matrix, so that 32 images are enough to begin with and each is read by many.

    132 blocks of 12 warps: one loads, three split and then write zeros, eight multiply
    tile (r, c), 128 x 128: pairs of 64 of k from the middle up to r, then from below the middle down to c
    tiles whose blocks span more than 29 binades, or hold inf or NaN, are done again in plain fp32: usually none

Limits: sm_90a only.
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA_SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

constexpr int kStages = 3;
constexpr int kTile = 128;         // rows of A, columns of B
constexpr int kDepth = 64;         // of k in an image of a tile
constexpr int kImageBytes = 32768;

constexpr int kSplitters = 96;

__device__ __forceinline__ void splitters_meet() { asm volatile("bar.sync 2, 96;" ::: "memory"); }

// Eight neighbours in k of one line of a block, zeros beyond the matrix. `along_k`: k is contiguous in memory.
template <bool along_k>
__device__ __forceinline__ void eight_of(float (&value)[8], const float* __restrict__ source, int M, bool wide, int line, int k) {
  if (along_k && wide) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (line < M && k + 4 * half < M) {
        four = __ldg(reinterpret_cast<const float4*>(source + static_cast<int64_t>(line) * M + k + 4 * half));
      }
      value[4 * half] = four.x;
      value[4 * half + 1] = four.y;
      value[4 * half + 2] = four.z;
      value[4 * half + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      const int64_t at = along_k ? static_cast<int64_t>(line) * M + k + q : static_cast<int64_t>(k + q) * M + line;
      value[q] = line < M && k + q < M ? __ldg(source + at) : 0.0f;
    }
  }
}

// Asks for a block of 128 lines and 64 of k to come to the L2.
template <bool along_k>
__device__ __forceinline__ void fetch_ahead(const float* __restrict__ source, int M, int first_line, int first_k, int thread) {
  for (int at = thread; at < 256; at += kSplitters) {  // 128 bytes each
    const int line = first_line + (along_k ? at / 2 : at % 4 * 32), k = first_k + (along_k ? at % 2 * 32 : at / 4);
    if (line < M && k < M) {
      const float* place = source + (along_k ? static_cast<int64_t>(line) * M + k : static_cast<int64_t>(k) * M + line);
      asm volatile("prefetch.global.L2 [%0];" ::"l"(place));
    }
  }
}

// Writes the image of one block, 128 lines and 64 of k, and then 1/scale, or NaN where two halves do not hold some element
// to 2^-22 of itself: who sees that sees the image.
template <bool along_k>
__device__ __forceinline__ void split_block(const float* __restrict__ source, int M, bool wide, int first_line, int first_k,
                                            uint4* __restrict__ image, unsigned* __restrict__ unscale, unsigned* words, int thread) {
  unsigned largest = 0;
#pragma unroll 2
  for (int at = thread; at < 1024; at += kSplitters) {
    float value[8];
    eight_of<along_k>(value, source, M, wide, first_line + (along_k ? at / 8 : at % 128), first_k + 8 * (along_k ? at % 8 : at / 128));
#pragma unroll
    for (int q = 0; q < 8; ++q) largest = max(largest, __float_as_uint(value[q]) & 0x7fffffffu);
  }
  largest = __reduce_max_sync(0xffffffffu, largest);
  if (thread % 32 == 0) words[thread / 32] = largest;
  splitters_meet();
  largest = max(words[0], max(words[1], words[2]));

  // The largest element comes to lie in [2^14, 2^15). Exponents are biased by 127.
  const int exponent = largest == 0 ? 127 : static_cast<int>(largest >> 23);
  bool bad = exponent < 127 - 40 || exponent > 127 + 60;
  const float scale = __uint_as_float(static_cast<unsigned>(min(max(268 - exponent, 1), 254)) << 23);
#pragma unroll 1
  for (int at = thread; at < 1024; at += kSplitters) {
    const int line = along_k ? at / 8 : at % 128, chunk = along_k ? at % 8 : at / 128;
    float value[8];
    eight_of<along_k>(value, source, M, wide, first_line + line, first_k + 8 * chunk);
    __align__(16) __half high[8];
    __align__(16) __half low[8];
#pragma unroll
    for (int q = 0; q < 8; ++q) {
      const float scaled = value[q] * scale;
      high[q] = __float2half_rn(scaled);
      const float rest = (scaled - __half2float(high[q])) * 2048.0f;
      low[q] = __float2half_rn(rest);
      bad |= !(fabsf(rest - __half2float(low[q])) <= fabsf(scaled) * 0x1p-11f);
    }
    const int row = chunk / 4 * 1024 + line * 8;
    __stcg(image + row + ((chunk % 4) ^ (line % 8)), *reinterpret_cast<const uint4*>(high));
    __stcg(image + row + ((chunk % 4 + 4) ^ (line % 8)), *reinterpret_cast<const uint4*>(low));
  }
  const bool any_bad = __any_sync(0xffffffffu, bad);
  if (thread % 32 == 0) words[4 + thread / 32] = any_bad;
  asm volatile("fence.proxy.async;" ::: "memory");  // copies of other blocks read it
  __threadfence();
  splitters_meet();
  if (thread == 0) {
    const bool all_hold = words[4] + words[5] + words[6] == 0;
    const unsigned value = all_hold ? static_cast<unsigned>(exponent - 14) << 23 : 0x7fffffffu;
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(unscale), "r"(value) : "memory");
  }
}

// 1/scale of an image, once it is there.
__device__ __forceinline__ float unscale_of(const unsigned* unscale) {
  unsigned value;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(unscale) : "memory");
  } while (value == 0);
  return __uint_as_float(value);
}

// The number `turn` of the pairs of steps of tile (row, column): from the middle up to the row, then down to the column.
__device__ __forceinline__ int pair_of(int turn, int row, int column, int middle) {
  if (middle < column || middle > row) return column + turn;
  const int up = row - middle + 1;
  return turn < up ? middle + turn : middle - 1 - (turn - up);
}

// Tiles on and below the diagonal, those with the longest range of k first: (last row, 0), then the diagonal above, ...
__device__ __forceinline__ void place_of(int number, int tiles, int* row, int* column) {
  int diagonal = static_cast<int>((sqrtf(8.0f * number + 1.0f) - 1.0f) * 0.5f);
  while (diagonal * (diagonal + 1) / 2 > number) --diagonal;
  while ((diagonal + 1) * (diagonal + 2) / 2 <= number) ++diagonal;
  *column = number - diagonal * (diagonal + 1) / 2;
  *row = *column + tiles - 1 - diagonal;
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

// Elements (i, j) and (i, j + 1), j even; what lies above the diagonal becomes zero.
__device__ __forceinline__ void store_pair(float* __restrict__ C, int M, int i, int j, float left, float right) {
  if (i >= M) return;
  float* target = C + static_cast<int64_t>(i) * M + j;
  if (j > i) left = 0.0f;
  if (j + 1 > i) right = 0.0f;
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
__device__ __noinline__ void plain_tile(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                                        int M, int first_i, int first_j, float* shared, int thread) {
  using Tile = float[kStep][kTile + 4];
  Tile& tile_a = *reinterpret_cast<Tile*>(shared);
  Tile& tile_b = *reinterpret_cast<Tile*>(shared + kStep * (kTile + 4));
  float sum[8][8] = {};
  for (int start = first_j; start < min(first_i + kTile, M); start += kStep) {
    asm volatile("bar.sync 1, 256;" ::: "memory");
#pragma unroll
    for (int step = 0; step < kStep * kTile / 256; ++step) {
      const int at = step * 256 + thread;
      const int64_t i = first_i + at / kStep;
      const int k_of_a = start + at % kStep;
      tile_a[at % kStep][at / kStep] = i < M && k_of_a < M ? A[i * M + k_of_a] : 0.0f;
      const int j = first_j + at % kTile;
      const int64_t k_of_b = start + at / kTile;
      tile_b[at / kTile][at % kTile] = j < M && k_of_b < M ? B[k_of_b * M + j] : 0.0f;
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
      if (i < M && j < M) C[static_cast<int64_t>(i) * M + j] = i >= j ? sum[r][c] : 0.0f;
    }
  }
}

__global__ void __launch_bounds__(384, 1)
wgmma_kernel(const float* __restrict__ A, const float* __restrict__ B, unsigned char* __restrict__ images,
             unsigned* __restrict__ unscales, const int* __restrict__ order, int blocks, float* __restrict__ C,
             int* __restrict__ counters, int M, int tiles, bool wide) {
  extern __shared__ __align__(1024) unsigned char stages[];
  __shared__ __align__(16) float plain[kPlainFloats];
  __shared__ __align__(8) uint64_t full[kStages], empty[kStages], announced[2], heard[2];
  __shared__ int announcement[2];
  __shared__ float factors[kStages];
  __shared__ unsigned words[8];

  const int steps = 2 * tiles, all = tiles * (tiles + 1) / 2, middle = tiles / 2;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(shared_address(&full[stage]), 1);
      barrier_init(shared_address(&empty[stage]), 8);
    }
    for (int slot = 0; slot < 2; ++slot) {
      barrier_init(shared_address(&announced[slot]), 1);
      barrier_init(shared_address(&heard[slot]), 8);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  if (warp == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    if (threadIdx.x == 0) {
      Turn stage = {0, 0}, turn = {0, 0};
      for (int number = blockIdx.x;;) {
        barrier_wait(shared_address(&heard[turn.place]), (turn.round & 1) ^ 1);
        announcement[turn.place] = number;
        barrier_arrive(shared_address(&announced[turn.place]));
        turn.advance(2);
        if (number >= all) break;
        int row, column;
        place_of(number, tiles, &row, &column);
        number = gridDim.x + atomicAdd(&counters[0], 1);
        for (int at = 0; at < 2 * (row - column + 1); ++at) {
          const int step = 2 * pair_of(at / 2, row, column, middle) + at % 2;
          const int64_t of_a = static_cast<int64_t>(row) * steps + step;
          const int64_t of_b = static_cast<int64_t>(tiles + column) * steps + step;
          const float factor = unscale_of(unscales + of_a) * unscale_of(unscales + of_b);
          barrier_wait(shared_address(&empty[stage.place]), (stage.round & 1) ^ 1);
          asm volatile("fence.proxy.async;" ::: "memory");
          factors[stage.place] = factor;
          const unsigned barrier = shared_address(&full[stage.place]);
          const unsigned target = shared_address(stages + stage.place * 2 * kImageBytes);
          barrier_expect(barrier, 2 * kImageBytes);
          bulk_load(target, images + of_a * kImageBytes, kImageBytes, barrier);
          bulk_load(target + kImageBytes, images + of_b * kImageBytes, kImageBytes, barrier);
          stage.advance(kStages);
        }
      }
    }
  } else if (warp < 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
    const int thread = threadIdx.x - 32;
    // The next block is drawn before one is split, so that it is on its way to the L2 meanwhile.
    const auto draw = [&](int which) {
      splitters_meet();
      if (thread == 0) words[7] = atomicAdd(&counters[which], 1);
      splitters_meet();
      return static_cast<int>(words[7]);
    };
    int next = draw(1);
    while (next < blocks) {
      const int block = __ldg(order + next);
      const bool of_b = block < 0;
      const int tile = (block & 0x7fffffff) >> 16, step = block & 0xffff;
      next = draw(1);
      if (next < blocks) {
        const int coming = __ldg(order + next), its_tile = (coming & 0x7fffffff) >> 16, its_step = coming & 0xffff;
        if (coming < 0) {
          fetch_ahead<false>(B, M, its_tile * kTile, its_step * kDepth, thread);
        } else {
          fetch_ahead<true>(A, M, its_tile * kTile, its_step * kDepth, thread);
        }
      }
      const int64_t at = static_cast<int64_t>((of_b ? tiles : 0) + tile) * steps + step;
      uint4* image = reinterpret_cast<uint4*>(images) + at * (kImageBytes / 16);
      if (of_b) {
        split_block<false>(B, M, false, tile * kTile, step * kDepth, image, unscales + at, words, thread);
      } else {
        split_block<true>(A, M, wide, tile * kTile, step * kDepth, image, unscales + at, words, thread);
      }
    }
    for (int number = draw(2); number < all - tiles; number = draw(2)) {
      int row, column;
      place_of(number, tiles, &row, &column);
      write_zeros(C, M, row, column, thread, kSplitters);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    const int half = warp / 4 - 1;  // rows 0..63 or 64..127 of the tile
    Turn stage = {0, 0}, turn = {0, 0};
    for (;;) {
      barrier_wait(shared_address(&announced[turn.place]), turn.round & 1);
      const int number = announcement[turn.place];
      __syncwarp();
      if (lane == 0) barrier_arrive(shared_address(&heard[turn.place]));
      turn.advance(2);
      if (number >= all) break;
      int tile_row, tile_column;
      place_of(number, tiles, &tile_row, &tile_column);
      float total[64] = {}, high[64], across[64];
      // NaN marks an image that does not hold its block; then the whole tile is done in plain fp32.
      bool marked = M < kShortest;
      // Two steps at a time: while the tensor cores work on one of two sums, the other goes to the total.
      for (int pair = 0; pair < tile_row - tile_column + 1; ++pair) {
        const int first = stage.place;
        barrier_wait(shared_address(&full[first]), stage.round & 1);
        const float factor = factors[first];
        const unsigned a = shared_address(stages + first * 2 * kImageBytes) + half * 8192;
        const unsigned b = shared_address(stages + first * 2 * kImageBytes) + kImageBytes;
        wgmma_fence();
        multiply_high(high, a, b);
        wgmma_commit();
        multiply_across(across, a, b);
        wgmma_commit();
        stage.advance(kStages);
        const int second = stage.place;
        const unsigned next_a = shared_address(stages + second * 2 * kImageBytes) + half * 8192;
        const unsigned next_b = shared_address(stages + second * 2 * kImageBytes) + kImageBytes;
        wgmma_wait<1>(high);
        promote(total, high, factor);
        barrier_wait(shared_address(&full[second]), stage.round & 1);
        const float next_factor = factors[second];
        marked |= isnan(factor) || isnan(next_factor);
        wgmma_fence();
        multiply_high(high, next_a, next_b);
        wgmma_commit();
        wgmma_wait<1>(across);
        if (lane == 0) barrier_arrive(shared_address(&empty[first]));
        promote(total, across, factor * 0x1p-11f);
        wgmma_fence();
        multiply_across(across, next_a, next_b);
        wgmma_commit();
        wgmma_wait<1>(high);
        promote(total, high, next_factor);
        wgmma_wait<0>(across);
        if (lane == 0) barrier_arrive(shared_address(&empty[second]));
        promote(total, across, next_factor * 0x1p-11f);
        stage.advance(kStages);
      }

      if (marked) {
        plain_tile(A, B, C, M, tile_row * kTile, tile_column * kTile, plain, threadIdx.x - 128);
        continue;
      }
      const int i = tile_row * kTile + half * 64 + warp % 4 * 16 + lane / 4;
      const int j = tile_column * kTile + lane % 4 * 2;
#pragma unroll
      for (int n = 0; n < 16; ++n) {
        store_pair(C, M, i, j + 8 * n, total[4 * n], total[4 * n + 1]);
        store_pair(C, M, i + 8, j + 8 * n, total[4 * n + 2], total[4 * n + 3]);
      }
    }
  }
}

// The blocks to split, those first that are needed first: (tile << 16 | step) of A, and with the highest bit of B. `place`
// is `place_of`, `processors` tiles are at work at a time, and a pair of steps takes one unit of time.
std::vector<int> order_of(int tiles, int processors) {
  const int steps = 2 * tiles, middle = tiles / 2;
  std::vector<int> needed(static_cast<size_t>(2) * tiles * steps, INT_MAX);
  std::priority_queue<int, std::vector<int>, std::greater<int>> free;
  for (int each = 0; each < processors; ++each) free.push(0);
  for (int diagonal = 0; diagonal < tiles; ++diagonal) {
    for (int column = 0; column <= diagonal; ++column) {
      const int row = column + tiles - 1 - diagonal;
      const int begins = free.top();
      free.pop();
      for (int turn = 0; turn <= row - column; ++turn) {
        const bool rotates = middle >= column && middle <= row;
        const int up = row - middle + 1;
        const int pair = !rotates ? column + turn : turn < up ? middle + turn : middle - 1 - (turn - up);
        for (int step = 2 * pair; step < 2 * pair + 2; ++step) {
          const int at = 2 * (begins + turn) + step % 2;
          int& of_a = needed[static_cast<size_t>(row) * steps + step];
          int& of_b = needed[static_cast<size_t>(tiles + column) * steps + step];
          of_a = std::min(of_a, at);
          of_b = std::min(of_b, at);
        }
      }
      free.push(begins + row - column + 1);
    }
  }
  std::vector<int> wanted;
  for (int at = 0; at < 2 * tiles * steps; ++at) {
    if (needed[at] != INT_MAX) wanted.push_back(at);
  }
  std::stable_sort(wanted.begin(), wanted.end(), [&](int one, int other) { return needed[one] < needed[other]; });
  for (int& at : wanted) {
    const int tile = at / steps, step = at % steps;
    at = tile < tiles ? tile << 16 | step : static_cast<int>(0x80000000u | static_cast<unsigned>(tile - tiles) << 16 | step);
  }
  return wanted;
}

// `images` holds kImageBytes for each of 4 * tiles * tiles blocks; `unscales` as many words, three counters before them.
cudaError_t launch(const float* A, const float* B, float* C, unsigned char* images, int* counters, const int* order, int blocks,
                   int M, int processors, cudaStream_t stream) {
  const int tiles = (M + kTile - 1) / kTile;
  const bool wide = M % 4 == 0 && reinterpret_cast<uintptr_t>(A) % 16 == 0;
  constexpr int kShared = kStages * 2 * kImageBytes;
  cudaError_t refused = cudaFuncSetAttribute(wgmma_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
  if (refused != cudaSuccess) return refused;
  refused = cudaMemsetAsync(counters, 0, (4 + static_cast<size_t>(4) * tiles * tiles) * sizeof(int), stream);
  if (refused != cudaSuccess) return refused;
  wgmma_kernel<<<std::min(tiles * (tiles + 1) / 2, processors), 384, kShared, stream>>>(
      A, B, images, reinterpret_cast<unsigned*>(counters + 4), order, blocks, C, counters, M, tiles, wide);
  return cudaGetLastError();
}
"""

CPP_SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

std::vector<int> order_of(int tiles, int processors);
cudaError_t launch(const float* A, const float* B, float* C, unsigned char* images, int* counters, const int* order, int blocks,
                   int M, int processors, cudaStream_t stream);

// The list of blocks for so many tiles, on the device: made once for each size.
static torch::Tensor order_on(const torch::Device& device, int tiles, int processors) {
  static std::mutex making;
  static std::map<std::pair<int, int>, torch::Tensor> made;
  std::lock_guard<std::mutex> alone(making);
  torch::Tensor& order = made[{device.index(), tiles}];
  if (!order.defined()) {
    std::vector<int> blocks = order_of(tiles, processors);
    order = torch::tensor(blocks, torch::kInt32).to(device);
  }
  return order;
}

torch::Tensor tril_matmul_wgmma_split_beside(const torch::Tensor& A, const torch::Tensor& B) {
  TORCH_CHECK(A.is_cuda() && B.is_cuda(), "A and B must be CUDA tensors");
  TORCH_CHECK(A.device() == B.device(), "A and B must be on the same device");
  TORCH_CHECK(A.scalar_type() == torch::kFloat32 && B.scalar_type() == torch::kFloat32, "A and B must be float32");
  TORCH_CHECK(A.dim() == 2 && B.dim() == 2, "A and B must be matrices");
  TORCH_CHECK(A.is_contiguous() && B.is_contiguous(), "A and B must be contiguous");
  const int64_t M = A.size(0);
  TORCH_CHECK(A.size(1) == M && B.size(0) == M && B.size(1) == M, "A and B must be square and of the same size");
  TORCH_CHECK(M <= 4000000, "M is too large for this grid: ", M);

  const c10::cuda::CUDAGuard guard(A.device());
  auto C = torch::empty({M, M}, A.options());
  if (M == 0) return C;
  const int tiles = static_cast<int>((M + 127) / 128);
  const int64_t blocks = 4 * static_cast<int64_t>(tiles) * tiles;
  const int processors = at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  const torch::Tensor order = order_on(A.device(), tiles, processors);
  auto images = torch::empty({blocks * 32768}, A.options().dtype(torch::kUInt8));
  auto counters = torch::empty({blocks + 4}, A.options().dtype(torch::kInt32));
  C10_CUDA_CHECK(launch(A.data_ptr<float>(), B.data_ptr<float>(), C.data_ptr<float>(), images.data_ptr<uint8_t>(),
                        counters.data_ptr<int>(), order.data_ptr<int>(), static_cast<int>(order.numel()),
                        static_cast<int>(M), processors, c10::cuda::getCurrentCUDAStream()));
  return C;
}
"""

extension = load_inline(
    name="tril_matmul_wgmma_split_beside",
    cpp_sources=CPP_SOURCE,
    cuda_sources=CUDA_SOURCE,
    functions=["tril_matmul_wgmma_split_beside"],
    no_implicit_headers=True,
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return extension.tril_matmul_wgmma_split_beside(A, B)
