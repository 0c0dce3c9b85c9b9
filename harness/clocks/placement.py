"""Where outputs and temporaries lie on a GPU, drawn anew for each queue of launches.

The allocator hands a process the same blocks again and again, and which memory channels and cache slices those are is
a matter of luck that lasts as long as the process. A random number of blocks of the outputs' sizes, held while a queue
is made, moves everything that is allocated after them; so the luck becomes noise, which rounds average out.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import torch

_MOST_BLOCKS = 32
_MOST_BYTES = 512 << 20  # of all that is held for one size
_empty = torch.empty
_randbelow = secrets.randbelow


class Placement:
    """Blocks of PyTorch's allocator on `device`, held until the next `redraw`."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._held: list[torch.Tensor] = []

    def redraw(self, sizes_bytes: Sequence[int]) -> None:
        """Let go of what was held, and hold some blocks of each size, as many as chance says."""
        self._held = []
        for size_bytes in sizes_bytes:
            if size_bytes:
                most = min(_MOST_BLOCKS, max(1, _MOST_BYTES // size_bytes))
                self._held += [
                    _empty(size_bytes, dtype=torch.uint8, device=self._device) for _ in range(_randbelow(most + 1))
                ]
