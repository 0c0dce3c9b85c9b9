"""The kernels between which a launch's timed window lies, under names that are drawn for each worker.

One opens the window (`masking.LateInputWriter`), the other closes it and does nothing. A recording in which they do not
come in turn is none; and who could forge one beforehand does not know what they will be called.
"""

from __future__ import annotations

import secrets
import string
from typing import NamedTuple

from harness.protocol import cuda_driver

SOURCE = r"""
extern "C" __global__ void window_closes() {}
"""
_THREADS = 32
_LETTERS = string.ascii_lowercase + string.digits


class Markers(NamedTuple):
    """What the kernels are called that open and close a window."""

    opens: str
    closes: str


PLAIN = Markers("await_and_complete", "window_closes")


def drawn() -> Markers:
    """Names as long as the plain ones, that nobody knows yet."""
    return Markers(*(f"k{''.join(secrets.choice(_LETTERS) for _ in plain[1:])}" for plain in PLAIN))


def renamed(cubin: bytes, markers: Markers) -> bytes:
    """`cubin` with its plain markers under the names of `markers`: a cubin has each name in tables of text alone."""
    for plain, name in zip(PLAIN, markers):
        cubin = cubin.replace(plain.encode(), name.encode())
    return cubin


class Closer:
    """The loaded kernel that closes windows, called `name`."""

    def __init__(self, cubin: bytes, name: str = PLAIN.closes) -> None:
        self._kernel = cuda_driver.Kernel(cubin, name, 1, _THREADS, ())

    def run(self, stream: int) -> None:
        self._kernel.launch(stream)
