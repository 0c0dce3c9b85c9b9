"""A kernel that waits for a word of host memory, and takes what was put beside it over into the device's own.

A polling thread sees the word within microseconds, and the GPU does not go idle meanwhile. What many blocks need is
copied once: 528 blocks that each read a word of host memory took some 0.4 ms on an H200, one after the other.
"""

from __future__ import annotations

import ctypes

from harness.protocol import cuda_driver

_THREADS = 32  # one waits, and each takes a word: a reading of host memory takes a microsecond
_TYPES = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32)
SOURCE = r"""
extern "C" __global__ void await_word(volatile unsigned int* said, const volatile unsigned int* word,
                                      unsigned int value, const volatile unsigned int* source, unsigned int* target,
                                      unsigned int words) {
    if (threadIdx.x == 0) {
        if (said) {
            __threadfence_system();
            *said = value;
        }
        while ((int)(*word - value) < 0) {
#if __CUDA_ARCH__ >= 700
            __nanosleep(200);
#endif
        }
        __threadfence_system();
    }
    __syncwarp();
    if (threadIdx.x < words) target[threadIdx.x] = source[threadIdx.x];
}
"""


class Waiter:
    """The loaded kernel, bound to a page of words that lies at `words` for the device."""

    def __init__(self, cubin: bytes, words: int) -> None:
        self._kernel = cuda_driver.Kernel(cubin, "await_word", 1, _THREADS, _TYPES)
        self._words = words

    def wait(self, stream: int, offset: int, value: int) -> None:
        """Hold later work of `stream` until the 32-bit word at `offset` is at least `value` (a cyclic difference)."""
        self._launch(stream, 0, offset, value, 0, 0, 0)

    def wait_and_take(
        self, stream: int, offset: int, value: int, source: int, size_bytes: int, target: int, signal: int | None = None
    ) -> None:
        """The same, and then copy `size_bytes` (whole words, 32 at most) at offset `source` to the address `target`.

        Beforehand `value` is written to the word at offset `signal`, if any: as a write of its own in the stream it
        takes the host two microseconds more, and the device three.
        """
        self._launch(stream, 0 if signal is None else self._words + signal, offset, value, source, size_bytes, target)

    def _launch(
        self, stream: int, signal: int, offset: int, value: int, source: int, size_bytes: int, target: int
    ) -> None:
        self._kernel.launch(stream, signal, self._words + offset, value, self._words + source, target, size_bytes // 4)
