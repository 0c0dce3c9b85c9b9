"""The buffers by which a GPU's L2 is made cold, shared with a worker, and the look whether that was done.

A worker works on the shared buffers; what the sum over the one that is read must be follows from a copy that stays
here, so a worker that writes into the shared one gains nothing.
"""

from __future__ import annotations

import secrets

import torch

from harness.device.gpu_regions import handle_of, shared_region
from harness.protocol.gpu_cache_flush import L2_TIMES, GpuCacheFlush
from harness.protocol.layout import REGION_BYTES

_LEGACY_STREAM = 0
_SAMPLED_WORDS = 4096
_SHARED = ("written", "read", "sums")


class GpuFlushBuffers:
    """Buffers for the L2 of `device`, of `l2_bytes`; `cubin` has the kernels."""

    def __init__(self, l2_bytes: int, device: torch.device, cubin: bytes, blocks: int) -> None:
        self._device = device
        sizes = L2_TIMES * l2_bytes, L2_TIMES * l2_bytes, REGION_BYTES
        # What workers share, as uint8.
        self.regions = {name: shared_region(each_bytes, device) for name, each_bytes in zip(_SHARED, sizes)}
        size_bytes = self.regions["read"].numel()
        words, drawn = size_bytes // 8, self._generator()
        self._copy = torch.randint(-(2**63), 2**63 - 1, (words,), dtype=torch.int64, device=device, generator=drawn)
        self.regions["read"].view(torch.int64).copy_(self._copy)
        self._own_sum = torch.zeros(1, dtype=torch.int64, device=device)
        written, read = self.regions["written"].data_ptr(), self.regions["read"].data_ptr()
        self._own_word = torch.zeros(1, dtype=torch.int64, device=device)
        word_address = self._own_word.data_ptr()
        self._own = GpuCacheFlush(cubin, written, read, size_bytes, word_address, blocks)
        self._expected = GpuCacheFlush(cubin, 0, self._copy.data_ptr(), size_bytes, word_address, blocks)

    def command(self) -> dict[str, dict[str, str | int]]:
        """The shared buffers as a worker opens them."""
        return {name: handle_of(region) for name, region in self.regions.items()}

    def draw_word(self) -> None:
        """Take a fresh word for the judge's own launches."""
        self._own_word.fill_(_signed(secrets.randbits(64)))

    def flush(self) -> None:
        """The flush of the judge's own launches, in stream order."""
        self._own.run(_LEGACY_STREAM, self._own_sum.data_ptr())

    def fault(self, index: int, word: int) -> str | None:
        """What the flush under `word` of a worker's launch `index` left undone; waits for the device."""
        sum_of_worker = self.regions["sums"].view(torch.int64)[index].clone()  # first: the right one exists nowhere yet
        words = self.regions["written"].view(torch.int64)
        places = torch.randint(words.numel(), (_SAMPLED_WORDS,), device=self._device, generator=self._generator())
        missed = (words[places] != _signed(word)).sum()
        self._own_word.fill_(_signed(word))
        self._expected.add_up(_LEGACY_STREAM, self._own_sum.data_ptr())
        read = sum_of_worker == self._own_sum[0]
        # One wait for all of it: the worker's stream holds the device in turns with this one.
        missed_count, was_read = torch.stack([missed, read.to(torch.int64)]).tolist()
        if missed_count:
            return f"{missed_count} of {_SAMPLED_WORDS} words looked at were not written over"
        return None if was_read else "what was to be read after it was not read, or not all of it"

    def _generator(self) -> torch.Generator:
        """A stream of numbers of its own: PyTorch's was seeded to draw the inputs, and might be followed from those."""
        return torch.Generator(self._device).manual_seed(secrets.randbits(63))


def _signed(word: int) -> int:
    """The int64 that has the bits of the uint64 `word`."""
    return word - 2**64 if word >= 2**63 else word
