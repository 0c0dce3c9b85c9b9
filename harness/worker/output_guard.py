"""A guard behind the outputs of a launch on a GPU: what is written past the end of one is found afterwards.

PyTorch's allocator hands out blocks of whole 512 bytes and reuses the block that was freed last for the same size. So a
block as large as the output is given a pattern at its end and freed right before `forward`; where the output then lies
in it, the bytes between the output's end and the block's must still hold the pattern. No kernel has business there.
That is said only of a `forward` that allocated its outputs and nothing else: a temporary may have lain in the same
place.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from harness.protocol import cuda_driver
from harness.protocol.layout import TensorSpec

BLOCK_BYTES = 512
PATTERN = 0xA5
_empty = torch.empty
_storage = torch.Tensor.untyped_storage
_nbytes = torch.UntypedStorage.nbytes
_data_ptr = torch.UntypedStorage.data_ptr
_stats = torch.cuda.memory_stats_as_nested_dict


class Guard:
    """Planted before a launch that is made alone; `broken` looks at it once the launch is over."""

    def __init__(self, device: torch.device, stream: int) -> None:
        self._device, self._stream = device, stream
        self._marked: dict[int, tuple[int, int]] = {}
        self._allocations = 0

    def plant(self, specs: Sequence[TensorSpec]) -> None:
        """Mark the end of one block for each output and free it; all are held at once, so that no two share one."""
        sizes = [spec.size_bytes for spec in specs if spec.size_bytes]
        blocks = [_empty(_whole_blocks(size), dtype=torch.uint8, device=self._device) for size in sizes]
        self._marked = {
            block.data_ptr(): (block.data_ptr() + size, block.data_ptr() + block.numel())
            for block, size in zip(blocks, sizes)
        }
        # The end alone: the whole block would lie in the cache that has just been made cold.
        for first, end in self._marked.values():
            if first < end:
                cuda_driver.fill_bytes(self._stream, first, PATTERN, end - first)
        self._allocations = _allocations_on(self._device)

    def broken(self, tensors: Sequence[torch.Tensor]) -> list[int] | None:
        """[bytes written, bytes guarded] when bytes behind one of the outputs were written. Waits for the device."""
        if _allocations_on(self._device) - self._allocations > len(tensors):
            return None
        for tensor in tensors:
            storage = _storage(tensor)
            first, end = self._marked.get(_data_ptr(storage), (0, 0))
            first = max(first, _data_ptr(storage) + _nbytes(storage))
            spare = end - first
            if spare <= 0:
                continue
            behind = cuda_driver.as_bytes(first, spare, str(self._device)).cpu()
            written = int((behind != PATTERN).sum())
            if written:
                return [written, spare]
        return None


def _allocations_on(device: torch.device) -> int:
    return _stats(device)["allocation"]["all"]["allocated"]


def _whole_blocks(size_bytes: int) -> int:
    return -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES
