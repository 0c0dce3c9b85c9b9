"""Where in a GPU's memory the outputs and temporaries of calls lie: as chosen for each queue of launches.

PyTorch's allocator hands out the block that was freed before, so that all calls of a process have theirs in one place,
and another process has them elsewhere: what that place costs a short call stays for the life of a process, and no number
of rounds takes it away. Some blocks that are held beside a queue leave it others. Queues of one choice have the same
ones, so that what is compared lies alike.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence

import torch

_PLACES = 4
_PADDING_BYTES, _STEP_BYTES = 2 << 20, 512  # as much as the allocator asks the driver for at a time, and rounds sizes to
_MOST_BYTES = 8 << 20  # calls with larger outputs take so long that no place shows, and their memory may be scarce
_CHOICE_BITS = 62
_randbits = secrets.randbits
_empty = torch.empty


def any_choice() -> int:
    """One of the choices of `Placement.hold`, by chance."""
    return _randbits(_CHOICE_BITS)


class Placement:
    """Blocks that are held on `device` so that others are free."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._held: list[torch.Tensor] = []

    def hold(self, output_bytes: Sequence[int], choice: int) -> None:
        """For a queue whose calls return tensors of these sizes, hold the blocks that `choice` says, and no others.

        Up to three of each output's size, so that the next one, and a temporary as large, lies in one of four places; and
        a padding of up to 2 MiB. None where the device has no memory for it, nor beside large outputs alone: a padding cut
        from the block of gigabytes that the next call needs whole left an H100 without room.
        """
        self._held = []
        choice, steps = divmod(choice, _PADDING_BYTES // _STEP_BYTES)
        sizes = []
        for size_bytes in output_bytes:
            if 0 < size_bytes <= _MOST_BYTES:
                choice, blocks = divmod(choice, _PLACES)
                sizes += [size_bytes] * blocks
        if any(size_bytes <= _MOST_BYTES for size_bytes in output_bytes):
            sizes.append(_STEP_BYTES * (1 + steps))
        with contextlib.suppress(torch.OutOfMemoryError):
            for size_bytes in sizes:
                self._held.append(_empty(size_bytes, dtype=torch.uint8, device=self._device))
