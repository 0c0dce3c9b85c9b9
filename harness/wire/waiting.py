"""A kernel that waits for a word of host memory, which holds a stream with less delay than the driver's own wait.

`cuStreamWaitValue32` looks again only after the better part of a millisecond once it has found the word not there yet
(H200: 0.5 to 1 ms for each wait, by no means always the same); a thread that polls sees it within microseconds, and the GPU
does not go idle meanwhile.
"""

from __future__ import annotations

import ctypes

from harness.wire import cuda_driver

SOURCE = r"""
extern "C" __global__ void await_word(const volatile unsigned int* word, unsigned int value) {
    while ((int)(*word - value) < 0) {
#if __CUDA_ARCH__ >= 700
        __nanosleep(200);
#endif
    }
}
"""


class Waiter:
    """The loaded kernel, bound to a page of words that lies at `words` for the device."""

    def __init__(self, cubin: bytes, words: int) -> None:
        self._function = cuda_driver.load_function(cubin, "await_word")
        self._words = words

    def wait(self, stream: int, offset: int, value: int) -> None:
        """Hold all later work of `stream` until the 32-bit word at `offset` is at least `value` (as a cyclic difference)."""
        arguments = [ctypes.c_uint64(self._words + offset), ctypes.c_uint32(value)]
        cuda_driver.launch(self._function, 1, 1, stream, arguments)
