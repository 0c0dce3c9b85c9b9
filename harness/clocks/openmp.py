"""How long OpenMP's idle threads spin: short, and the same in referee and player.

By default they spin for several milliseconds after a parallel region. On a CPU that is two processes fighting for the
cores while one of them is timed. The libraries read these variables when they are loaded, so they are set before
torch is imported.
"""

from __future__ import annotations

from collections.abc import MutableMapping

SPIN = {"GOMP_SPINCOUNT": "10000", "KMP_BLOCKTIME": "1"}


def shorten_spinning(environment: MutableMapping[str, str]) -> None:
    """Set the variables of GNU's and LLVM's OpenMP where the user has not."""
    for name, value in SPIN.items():
        environment.setdefault(name, value)
