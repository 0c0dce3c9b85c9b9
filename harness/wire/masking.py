"""Inputs under a one-time mask: readable in the player only once the referee gives the launch its key.

The referee writes `inputs XOR Philox4x32-10(key)` into shared device memory ahead of time; the player's stream
undoes the mask with the same kernel, whose key appears in host memory at the launch's own turn. So no input can be
read early, and the GPU need not switch between two processes inside a segment (each switch added 7 µs to the
launch after it, 0.26 % of a 2.7 ms kernel). Philox: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import ctypes

from harness.wire import cuda_driver

_THREADS = 512
SOURCE = r"""
extern "C" __global__ void apply_mask(const uint4* __restrict__ source, uint4* __restrict__ target,
                                      unsigned long long blocks_of_16, const unsigned int* key) {
    const unsigned int k0 = key[0], k1 = key[1], nonce0 = key[2], nonce1 = key[3];
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < blocks_of_16;
         at += step) {
        unsigned int c0 = (unsigned int)at, c1 = (unsigned int)(at >> 32), c2 = nonce0, c3 = nonce1;
        unsigned int r0 = k0, r1 = k1;
#pragma unroll
        for (int round = 0; round < 10; ++round) {
            const unsigned int high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
            const unsigned int high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
            c0 = high1 ^ c1 ^ r0;
            c1 = low1;
            c2 = high0 ^ c3 ^ r1;
            c3 = low0;
            r0 += 0x9E3779B9u;
            r1 += 0xBB67AE85u;
        }
        uint4 word = source[at];
        word.x ^= c0;
        word.y ^= c1;
        word.z ^= c2;
        word.w ^= c3;
        target[at] = word;
    }
}
"""


class Mask:
    """The loaded kernel, bound to the device address of the key."""

    def __init__(self, cubin: bytes, key_address: int, blocks: int) -> None:
        self._function = cuda_driver.load_function(cubin, "apply_mask")
        self._key_address = key_address
        self._blocks = blocks

    def apply(self, stream: int, source: int, target: int, size_bytes: int) -> None:
        """XOR `size_bytes` (a multiple of 16) at device address `source` with the key's stream into `target`."""
        cuda_driver.launch(
            self._function, self._blocks, _THREADS, stream,
            [
                ctypes.c_uint64(source), ctypes.c_uint64(target), ctypes.c_uint64(size_bytes // 16),
                ctypes.c_uint64(self._key_address),
            ],
        )
