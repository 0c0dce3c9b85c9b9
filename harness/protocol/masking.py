"""Inputs under a one-time mask: readable in the worker only once the judge gives the launch its key.

The judge writes `inputs XOR Philox4x32-10(key)` into shared device memory ahead of time; the worker's stream undoes the
mask with the same kernel, whose key appears in host memory at the launch's own turn. So no input can be read early, and
the GPU need not switch between two processes inside a segment (each switch added 7 µs to the launch after it, 0.26 % of
a 2.7 ms kernel). Philox: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harness.protocol import cuda_driver
from harness.protocol.arena import FLUSHED_BYTE, OPENING_BYTE, WINDOW_BYTE
from harness.protocol.markers import PLAIN

_THREADS = 512
_COMPLETING_THREADS = 1024  # for at most some thousand pieces, and for none in nearly every launch
SOURCE = r"""
// The 16 bytes of the key's stream that belong to the block numbered `at`.
__device__ __forceinline__ uint4 mask_of(unsigned long long at, unsigned int k0, unsigned int k1, unsigned int nonce0,
                                         unsigned int nonce1) {
    unsigned int c0 = (unsigned int)at, c1 = (unsigned int)(at >> 32), c2 = nonce0, c3 = nonce1;
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const unsigned int high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const unsigned int high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

__device__ __forceinline__ uint4 operator^(const uint4& word, const uint4& mask) {
    return make_uint4(word.x ^ mask.x, word.y ^ mask.y, word.z ^ mask.z, word.w ^ mask.w);
}

// `source` and `target` may be the same place, where memory is short.
__device__ __forceinline__ void mask(const uint4* source, uint4* target, unsigned long long blocks_of_16,
                                     const unsigned int* key) {
    const unsigned int k0 = key[0], k1 = key[1], nonce0 = key[2], nonce1 = key[3];
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < blocks_of_16;
         at += step) {
        target[at] = source[at] ^ mask_of(at, k0, k1, nonce0, nonce1);
    }
}

extern "C" __global__ void apply_mask(const uint4* source, uint4* target, unsigned long long blocks_of_16,
                                      const unsigned int* key) {
    mask(source, target, blocks_of_16, key);
}

struct Masked {
    const uint4* source;
    uint4* target;
    unsigned int key[4];
};

extern "C" __global__ void apply_masks(const Masked* each, unsigned long long count, unsigned long long blocks_of_16) {
    for (unsigned long long index = 0; index < count; ++index) {
        mask(each[index].source, each[index].target, blocks_of_16, each[index].key);
    }
}

// Says `value`, waits for it to be said, and then brings as many records as `source` has behind a key, each a place and
// the 16 bytes that belong there, both masked.
extern "C" __global__ void await_and_complete(volatile unsigned int* said, const volatile unsigned int* word,
                                              unsigned int value, const volatile unsigned int* source,
                                              const uint4* __restrict__ records, uint4* __restrict__ slot,
                                              unsigned long long blocks_of_16) {
    __shared__ unsigned int opening[5];
    if (threadIdx.x == 0) {
        __threadfence_system();
        *said = value;
        while ((int)(*word - value) < 0) {
#if __CUDA_ARCH__ >= 700
            __nanosleep(200);
#endif
        }
        __threadfence_system();
    }
    __syncthreads();
    if (threadIdx.x < 5) opening[threadIdx.x] = source[threadIdx.x];
    __syncthreads();
    const unsigned int k0 = opening[0], k1 = opening[1], nonce0 = opening[2], nonce1 = opening[3], count = opening[4];
    for (unsigned int at = threadIdx.x; at < count; at += blockDim.x) {
        const uint4 place = records[2 * at] ^ mask_of(2 * at, k0, k1, nonce0, nonce1);
        if (place.x < blocks_of_16) slot[place.x] = records[2 * at + 1] ^ mask_of(2 * at + 1, k0, k1, nonce0, nonce1);
    }
}
"""


class Mask:
    """The loaded kernel, bound to the device address of the key."""

    def __init__(self, cubin: bytes, key_address: int, blocks: int) -> None:
        self._kernel = cuda_driver.Kernel(cubin, "apply_mask", blocks, _THREADS, [ctypes.c_uint64] * 4)
        self._key_address = key_address

    def apply(self, stream: int, source: int, target: int, size_bytes: int) -> None:
        """XOR `size_bytes` (a multiple of 16) at device address `source` with the key's stream into `target`."""
        self._kernel.launch(stream, source, target, size_bytes // 16, self._key_address)


@dataclass(frozen=True)
class Masked:
    """Device addresses of what is masked and of where it goes, and the key."""

    source: int
    target: int
    key: bytes


class Masks:
    """The loaded kernel that masks several regions at once, each under a key of its own."""

    def __init__(self, cubin: bytes, blocks: int, device: torch.device) -> None:
        self._kernel = cuda_driver.Kernel(cubin, "apply_masks", blocks, _THREADS, [ctypes.c_uint64] * 3)
        self._device = device

    def apply(self, stream: int, each: Sequence[Masked], size_bytes: int) -> None:
        """XOR `size_bytes` (a multiple of 16) of each source with its key's stream into its target."""
        table = bytearray(b"".join(struct.pack("=QQ16s", one.source, one.target, one.key) for one in each))
        on_device = torch.frombuffer(table, dtype=torch.uint8).to(self._device)
        self._kernel.launch(stream, on_device.data_ptr(), len(each), size_bytes // 16)


class LateInputWriter:
    """The kernel that says that a launch's cache is cold, waits for its window, and brings the last pieces of its
    inputs. Its end opens the window. `words` is where the page of words lies for the device, and `records` the pieces.
    """

    def __init__(self, cubin: bytes, words: int, records: int, name: str = PLAIN.opens) -> None:
        types = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, *[ctypes.c_uint64] * 4]
        self._kernel = cuda_driver.Kernel(cubin, name, 1, _COMPLETING_THREADS, types)
        self._words, self._records = words, records

    def run(self, stream: int, sequence: int, slot: int, size_bytes: int) -> None:
        """For the launch numbered `sequence`, whose slot is at a device address, `size_bytes` long."""
        words = self._words
        self._kernel.launch(
            stream, words + FLUSHED_BYTE, words + WINDOW_BYTE, sequence, words + OPENING_BYTE, self._records, slot,
            size_bytes // 16,
        )
