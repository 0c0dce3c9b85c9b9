"""What makes a call on a GPU cold: two kernels before each launch, each over its own buffer of twice the L2.

The first writes its buffer over with a word, the second reads the other and adds it up under that word. So neither
inputs nor dirty lines are in the L2 when the timed window opens. Both leave a proof: the word is new for each launch,
and no worker has it before the launch's turn. The sum depends on every word that was read, each multiplied (by the
golden ratio's fraction, as in Knuth's multiplicative hashing) in a way that reading it earlier does not help with.
"""

from __future__ import annotations

import ctypes

from harness.protocol import cuda_driver

L2_TIMES = 2
POLICY = "cold: 2xL2 written, 2xL2 read"
SUM_BYTES = 8
_THREADS = 512
SOURCE = r"""
extern "C" __global__ void write_over(ulonglong2* __restrict__ target, unsigned long long pairs,
                                      const unsigned long long* key, unsigned long long* sum) {
    if (blockIdx.x == 0 && threadIdx.x == 0) *sum = 0;
    const unsigned long long word = *key;
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < pairs; at += step) {
        target[at] = make_ulonglong2(word, word);
    }
}

__device__ __forceinline__ unsigned long long mixed(unsigned long long value, unsigned long long word) {
    const unsigned long long product = (value ^ word) * 0x9E3779B97F4A7C15ull;
    return product ^ (product >> 32);
}

extern "C" __global__ void add_up(const ulonglong2* __restrict__ source, unsigned long long pairs,
                                  const unsigned long long* key, unsigned long long* sum) {
    __shared__ unsigned long long total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const unsigned long long word = *key;
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long own = 0;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < pairs; at += step) {
        const ulonglong2 pair = source[at];
        own += mixed(pair.x, word) + mixed(pair.y, word);
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) own += __shfl_down_sync(0xffffffffu, own, lanes);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, own);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, total);
}
"""


class GpuCacheFlush:
    """The loaded kernels on two buffers of `size_bytes` each (a multiple of 16), with the address of the word."""

    def __init__(self, cubin: bytes, written: int, read: int, size_bytes: int, word_address: int, blocks: int) -> None:
        self._write_over = cuda_driver.Kernel(cubin, "write_over", blocks, _THREADS, [ctypes.c_uint64] * 4)
        self._add_up = cuda_driver.Kernel(cubin, "add_up", blocks, _THREADS, [ctypes.c_uint64] * 4)
        self._written, self._read, self._pairs = written, read, size_bytes // 16
        self._word_address = word_address

    def run(self, stream: int, sum_address: int) -> None:
        """Write one buffer over, then read the other, in stream order; the sum goes to `sum_address` (uint64)."""
        self._write_over.launch(stream, self._written, self._pairs, self._word_address, sum_address)
        self._add_up.launch(stream, self._read, self._pairs, self._word_address, sum_address)

    def add_up(self, stream: int, sum_address: int) -> None:
        """The second half alone."""
        cuda_driver.fill_bytes(stream, sum_address, 0, SUM_BYTES)
        self._add_up.launch(stream, self._read, self._pairs, self._word_address, sum_address)
