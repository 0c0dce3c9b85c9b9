"""The most memory that a stretch of work on a device held beyond what was there before it."""

from __future__ import annotations

import torch


class PeakMemory:
    """Measures while entered; `bytes` then says what PyTorch's allocator gave out at most. 0 on a CPU, where nobody counts.
    """

    def __init__(self, device: torch.device) -> None:
        self._device, self.bytes = device, 0

    def __enter__(self) -> PeakMemory:
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
            self._before_bytes = torch.cuda.memory_allocated(self._device)
        return self

    def __exit__(self, *_: object) -> None:
        if self._device.type == "cuda":
            self.bytes = torch.cuda.max_memory_allocated(self._device) - self._before_bytes
