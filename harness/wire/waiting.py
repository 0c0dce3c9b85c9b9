"""A kernel that waits for a word of host memory, and takes what was put beside it over into the device's own.

A polling thread sees the word within microseconds, and the GPU does not go idle meanwhile. What many blocks need is
copied once: 528 blocks that each read a word of host memory took some 0.4 ms on an H200, one after the other.
"""

from __future__ import annotations

import ctypes

from harness.wire import cuda_driver

SOURCE = r"""
extern "C" __global__ void await_word(const volatile unsigned int* word, unsigned int value,
                                      const volatile unsigned int* source, unsigned int* target, unsigned int words) {
    while ((int)(*word - value) < 0) {
#if __CUDA_ARCH__ >= 700
        __nanosleep(200);
#endif
    }
    for (unsigned int at = 0; at < words; ++at) target[at] = source[at];
}
"""


class Waiter:
    """The loaded kernel, bound to a page of words that lies at `words` for the device."""

    def __init__(self, cubin: bytes, words: int) -> None:
        self._function = cuda_driver.load_function(cubin, "await_word")
        self._words = words

    def wait(self, stream: int, offset: int, value: int) -> None:
        """Hold all later work of `stream` until the 32-bit word at `offset` is at least `value` (as a cyclic
        difference).
        """
        self._launch(stream, offset, value, 0, 0, 0)

    def wait_and_take(self, stream: int, offset: int, value: int, source: int, size_bytes: int, target: int) -> None:
        """The same, and then copy `size_bytes` (whole words) at offset `source` to the device address `target`."""
        self._launch(stream, offset, value, source, size_bytes, target)

    def _launch(self, stream: int, offset: int, value: int, source: int, size_bytes: int, target: int) -> None:
        arguments = [
            ctypes.c_uint64(self._words + offset), ctypes.c_uint32(value), ctypes.c_uint64(self._words + source),
            ctypes.c_uint64(target), ctypes.c_uint32(size_bytes // 4),
        ]
        cuda_driver.launch(self._function, 1, 1, stream, arguments)
