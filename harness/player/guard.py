"""A guard behind the outputs of a launch on a GPU: what is written past the end of one is found afterwards.

PyTorch's allocator hands out blocks of whole 512 bytes and reuses the block that was freed last for the same size. So a
block as large as the output is filled with a pattern and freed before `forward`; where the output then lies in it, the
bytes between the output's end and the block's must still hold the pattern. No kernel has business there. That is said
only of a `forward` that allocated its outputs and nothing else: a temporary may have lain in the same place before.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from harness.wire import cuda_driver
from harness.wire.layout import TensorSpec

BLOCK_BYTES = 512
PATTERN = 0xA5
_empty = torch.empty
_storage = torch.Tensor.untyped_storage
_nbytes = torch.UntypedStorage.nbytes
_data_ptr = torch.UntypedStorage.data_ptr
_stats = torch.cuda.memory_stats


class Guard:
    """Planted before a launch that is made alone; `broken` looks at it once the launch is over."""

    def __init__(self, device: torch.device, stream: int) -> None:
        self._device, self._stream = device, stream
        self._ends: dict[int, int] = {}
        self._allocations = 0

    def plant(self, specs: Sequence[TensorSpec]) -> None:
        """Fill and free one block for each output; all are held at once, so that no two share one."""
        blocks = [
            _empty(_whole_blocks(spec.size_bytes), dtype=torch.uint8, device=self._device) for spec in specs if spec.size_bytes
        ]
        self._ends = {block.data_ptr(): block.data_ptr() + block.numel() for block in blocks}
        for block in blocks:
            cuda_driver.fill_bytes(self._stream, block.data_ptr(), PATTERN, block.numel())
        self._allocations = _allocations_on(self._device)

    def broken(self, tensors: Sequence[torch.Tensor]) -> list[int] | None:
        """[bytes written, bytes guarded] when bytes behind one of the outputs were written. Waits for the device."""
        if _allocations_on(self._device) - self._allocations > len(tensors):
            return None
        for tensor in tensors:
            storage = _storage(tensor)
            start, end = _data_ptr(storage), _data_ptr(storage) + _nbytes(storage)
            spare = self._ends.get(start, end) - end
            if spare <= 0:
                continue
            behind = cuda_driver.as_bytes(end, spare, str(self._device)).cpu()
            written = int((behind != PATTERN).sum())
            if written:
                return [written, spare]
        return None


def _allocations_on(device: torch.device) -> int:
    return _stats(device)["allocation.all.allocated"]


def _whole_blocks(size_bytes: int) -> int:
    return -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES
