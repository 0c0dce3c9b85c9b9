"""Where each tensor lies in a region of raw bytes, and views of it there.

Referee and worker agree on a layout once per problem size; after that only bytes move. Strides are kept, those of
views with gaps and of expanded tensors too, so that a candidate sees an input laid out as `get_inputs` made it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

ALIGNMENT_BYTES = 512
REGION_BYTES = 2 * 1024 * 1024
# Taken before any candidate is there that could patch them, and from PyTorch's own class, which nobody can. A candidate's
# tensor may have a method or, through `torch.Tensor`, a property of its own by any of these names.
_BASE = torch._C.TensorBase
_is_neg, _is_conj, _is_zerotensor = _BASE.is_neg, _BASE.is_conj, _BASE._is_zerotensor
base_stride, base_count, base_shape = _BASE.stride, _BASE.numel, _BASE.shape.__get__


@dataclass(frozen=True)
class TensorSpec:
    """One tensor in a region: `offset` in bytes, `shape` and `stride` in elements. The rest is worked out only once."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @cached_property
    def torch_dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype)

    @cached_property
    def extent(self) -> int:
        """Elements from the first to the last that the tensor touches; 0 when it is empty."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride))

    @cached_property
    def size_bytes(self) -> int:
        return self.extent * self.torch_dtype.itemsize

    @cached_property
    def has_gaps(self) -> bool:
        """Whether there are bytes from its first to its last that are no element's."""
        elements = math.prod(size for size, step in zip(self.shape, self.stride) if step)
        return elements != self.extent and 0 not in self.shape

    def view(self, region: torch.Tensor) -> torch.Tensor:
        """A fresh tensor object over these bytes of a one-dimensional uint8 `region`."""
        if self.extent == 0:
            return torch.empty_strided(self.shape, self.stride, dtype=self.torch_dtype, device=region.device)
        flat = region[self.offset : self.offset + self.size_bytes].view(self.torch_dtype)
        return flat.as_strided(self.shape, self.stride)

    def to_json(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "shape": list(self.shape), "stride": list(self.stride), "offset": self.offset}

    @staticmethod
    def from_json(body: dict[str, Any]) -> TensorSpec:
        return TensorSpec(body["dtype"], tuple(body["shape"]), tuple(body["stride"]), body["offset"])


def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def plan(tensors: Sequence[torch.Tensor], *, contiguous: bool = False) -> tuple[TensorSpec, ...]:
    """Lay tensors out one after the other.

    Those whose elements overlap, other than by being expanded, get plain row-major strides, and with `contiguous` all do.
    """
    specs, offset = [], 0
    for tensor in tensors:
        stride = tuple(tensor.stride())
        if contiguous or overlaps(tensor):
            stride = _row_major(tensor.shape)
        spec = TensorSpec(dtype_name(tensor.dtype), tuple(tensor.shape), stride, offset)
        specs.append(spec)
        offset += -(-max(spec.size_bytes, 1) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    return tuple(specs)


def region_bytes(specs: Sequence[TensorSpec]) -> int:
    """Bytes of a region for `specs`: a multiple of 2 MiB, so that an IPC handle never uncovers a neighbour."""
    end = max((spec.offset + spec.size_bytes for spec in specs), default=0)
    return max(1, -(-end // REGION_BYTES)) * REGION_BYTES


def _row_major(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(max(size, 1) for size in shape[dim + 1 :]) for dim in range(len(shape)))


def is_as_it_lies(tensor: torch.Tensor) -> bool:
    """Whether its elements are in memory, and not to be negated, conjugated or made when it is read."""
    return not (_is_neg(tensor) or _is_conj(tensor) or _is_zerotensor(tensor))


def fill(place: torch.Tensor, tensor: torch.Tensor) -> None:
    """Copy `tensor` to `place`, which is of its shape and may be expanded: what repeats is written once."""
    for dim, (step, size) in enumerate(zip(place.stride(), place.shape)):
        if step == 0 and size > 1:
            place, tensor = place.narrow(dim, 0, 1), tensor.narrow(dim, 0, 1)
    place.copy_(tensor)


def without_strides(tensor: torch.Tensor) -> str | None:
    """What kind of tensor it is, in a word, if its elements do not lie in memory by strides; None for any other."""
    if tensor.is_nested:
        return "nested"
    if tensor.layout is not torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    if tensor.is_quantized:
        return "quantized"
    return "meta" if tensor.is_meta else None


def overlaps(tensor: torch.Tensor) -> bool:
    """Whether elements share memory in any other way than along an expanded dimension."""
    reached = 0
    for step, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size >= 2 and step != 0:
            if step <= reached:
                return True
            reached += (size - 1) * step
    return False


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their stretch of memory, in any order of dimensions, without gap or overlap."""
    expected = 1
    for step, size in sorted(zip(base_stride(tensor), base_shape(tensor))):
        if size != 1 and step != expected:
            return False
        expected *= size
    return True
