"""Memory of a GPU that a worker opens too: the driver makes it for this alone, in multiples of 2 MiB, since a handle to
a tensor of PyTorch's caching allocator would let the other side read its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from harness.protocol import cuda_driver
from harness.protocol.layout import REGION_BYTES


def shared_region(size_bytes: int, device: torch.device) -> torch.Tensor:
    """At least `size_bytes` on `device` that a worker can open, as uint8. Raises DriverError where there is no room."""
    size_bytes = -(-size_bytes // REGION_BYTES) * REGION_BYTES
    return cuda_driver.as_bytes(cuda_driver.allocate(size_bytes), size_bytes, str(device))


def handle_of(region: torch.Tensor) -> dict[str, str | int]:
    """A shared region as a worker opens it."""
    return {"handle": cuda_driver.ipc_handle(region.data_ptr()).hex(), "bytes": region.numel()}


class GpuRegions:
    """Shared regions under `names`, of each so many as launches may be made at once; none at first."""

    def __init__(self, names: Sequence[str], device: torch.device) -> None:
        self._device = device
        self._regions: dict[str, list[torch.Tensor]] = {name: [] for name in names}

    def __getitem__(self, name: str) -> list[torch.Tensor]:
        return self._regions[name]

    def all(self) -> list[torch.Tensor]:
        return [region for regions in self._regions.values() for region in regions]

    def ensure(self, name: str, count: int, size_bytes: int, before: Callable[[], None]) -> None:
        """Have `count` of `name`, of `size_bytes` or more; `before` is called where those that there are go."""
        regions = self._regions[name]
        if len(regions) >= count and all(region.numel() >= size_bytes for region in regions[:count]):
            return
        before()
        fresh = self._regions[name] = []  # first, so that a failed allocation leaves no freed address behind
        for region in regions:
            cuda_driver.free(region.data_ptr())
        torch.cuda.empty_cache()
        for _ in range(count):
            fresh.append(shared_region(size_bytes, self._device))

    def free(self) -> None:
        """Give all of them back; no worker may have one open."""
        for name, regions in self._regions.items():
            self._regions[name] = []
            for region in regions:
                cuda_driver.free(region.data_ptr())
