"""Memory of a GPU that is taken and never used, so that the rest is that of a smaller card."""

from __future__ import annotations

import torch

from harness.errors import InputError
from harness.wire import cuda_driver
from harness.wire.layout import REGION_BYTES

_PIECE_BYTES = 1 << 30


class Ballast:
    """What is held on `device` to leave less than it has; nothing at first."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.regions: list[torch.Tensor] = []
        self._limit_bytes: int | None = None

    def leave(self, limit_bytes: int | None) -> None:
        """Hold all but `limit_bytes` of the card's memory, or nothing (None). Raises InputError where it has less."""
        if limit_bytes == self._limit_bytes:
            return
        _, total_bytes = torch.cuda.mem_get_info(self._device)
        wanted_bytes = 0 if limit_bytes is None else total_bytes - limit_bytes
        if wanted_bytes < 0:
            raise InputError(
                f"memory_gb is {limit_bytes / 1e9:.1f}, and the GPU has {total_bytes / 1e9:.1f} GB",
                hint="Give less, or leave it out",
            )
        self._limit_bytes = limit_bytes
        regions, self.regions = self.regions, []
        for region in regions:
            cuda_driver.free(region.data_ptr())
        while wanted_bytes >= REGION_BYTES:
            size_bytes = min(wanted_bytes, _PIECE_BYTES)
            self.regions.append(cuda_driver.as_bytes(cuda_driver.allocate(size_bytes), size_bytes, str(self._device)))
            wanted_bytes -= size_bytes
