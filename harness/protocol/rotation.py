"""Kernels that do nothing, so that every place in the GPU's rotation of launches is taken equally often.

What a cold call takes depends on how many kernels the process has launched before it, modulo four: on an H200 two of
four neighbouring places cost a call of 16 to 43 µs up to 2 µs more than the other two. As each launch of a queue has as
many kernels, one process has every call in the same place, and another process in another. With one kernel more after
every fourth launch, sixteen in a row take all four places equally often, however many kernels the call itself has.
"""

from __future__ import annotations

import secrets

from harness.protocol import cuda_driver

PLACES = 4
SOURCE = r"""
extern "C" __global__ void step_aside() {}
"""
_THREADS = 32
_randbelow = secrets.randbelow


class Rotation:
    """The loaded kernel; `before` is called for each launch of a queue in turn, the lead-in being number 0."""

    def __init__(self, cubin: bytes) -> None:
        self._kernel = cuda_driver.Kernel(cubin, "step_aside", 1, _THREADS, ())

    def before(self, stream: int, index: int) -> None:
        """Step aside as often as launch `index` of a queue needs: at its start as often as chance says."""
        for _ in range(_randbelow(PLACES) if index == 0 else steps_before(index)):
            self._kernel.launch(stream)


def steps_before(index: int) -> int:
    """Kernels more before launch `index` > 0: one for each four launches that are behind."""
    return int(index > 1 and (index - 1) % PLACES == 0)


def whole_rotations(launches: int) -> int:
    """The number of launches to make where `launches` are wanted, sixteen at most: whole turns of four, or as many."""
    return max(1, round(launches / PLACES)) * PLACES if launches >= PLACES else launches
