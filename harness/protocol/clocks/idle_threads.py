"""How long the idle threads of OpenMP and OpenBLAS spin: short, and the same in judge and worker.

By default OpenMP's spin for several milliseconds after a parallel region, and OpenBLAS's, which come with NumPy, for
104 ms after a product (on two cores; by 2¹⁶ cycles, as here, for less than one): two processes fight for cores while
one of them is timed. The libraries read these variables when they are loaded, before which they are to be set.
"""

from __future__ import annotations

from collections.abc import MutableMapping

SPIN = {"GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "1", "OPENBLAS_THREAD_TIMEOUT": "16"}


def shorten_spinning(environment: MutableMapping[str, str]) -> None:
    """Set the variables of GNU's and LLVM's OpenMP and of OpenBLAS where the user has not."""
    for name, value in SPIN.items():
        environment.setdefault(name, value)
