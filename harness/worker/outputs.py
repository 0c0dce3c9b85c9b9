"""Taking what `forward` returned: gates on its form, a copy into the outbox, and 0xFF over the storage it gave.

Values are the judge's to judge. Overwriting makes stale memory visible: a candidate that hands back an old buffer
unwritten hands back NaN. An output that is dense in another order of dimensions than the reference's (channels_last,
say) is right; its copy to that order is a part of the call. On a GPU a guard shows what was written past outputs' ends.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import torch

from harness.protocol import cuda_driver, tree
from harness.protocol.layout import TensorSpec, base_count, base_shape, base_stride, dtype_name, is_as_it_lies, is_dense

_OVERWRITE = 0xFF
# Of the guard: PyTorch's allocator hands out blocks of whole 512 bytes.
BLOCK_BYTES = 512
PATTERN = 0xA5
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_BASE = torch._C.TensorBase
_copy, _detach, _empty, _empty_strided = _BASE.copy_, _BASE.detach, torch.empty, torch.empty_strided
_storage, _offset = _BASE.untyped_storage, _BASE.storage_offset
_layout, _device, _dtype = _BASE.layout.__get__, _BASE.device.__get__, _BASE.dtype.__get__
_no_functions, _no_dispatch = torch._C.DisableTorchFunction, torch._C._DisableTorchDispatch
_nbytes, _data_ptr = torch.UntypedStorage.nbytes, torch.UntypedStorage.data_ptr
_stats, _memset, _fill_bytes = torch.cuda.memory_stats_as_nested_dict, ctypes.memset, cuda_driver.fill_bytes

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _without_modes(function: _Function) -> _Function:
    """A mode that `forward` left on would answer what is asked of its outputs, and copy them, in PyTorch's place."""

    @wraps(function)
    def alone(*arguments: Any) -> Any:
        with _no_functions(), _no_dispatch():
            return function(*arguments)

    return alone


@_without_modes
def fault_of(
    result: Any, shape: Any, specs: Sequence[TensorSpec], strides: Sequence[Sequence[int] | None], device: torch.device,
    slot: range,
) -> dict | None:
    """What is wrong with the form of a result, as {"code", "detail"}, or None. `shape` is the reference's structure,
    `specs` and `strides` its tensors (None where its own has no layout to match, or is computed when it is read);
    `slot` the addresses of the inputs.
    """
    try:
        skeleton, tensors = tree.flatten(result)
    except TypeError:
        return _fault("wrong_type", f"forward returned {_kind(result)}")
    returned_shape = tree.shape_of(skeleton)
    if result is None or returned_shape != shape:
        expected = "a tensor" if shape == "tensor" else f"{len(specs)} tensors"
        code = "wrong_count" if _count(returned_shape) not in (None, _count(shape)) else "wrong_type"
        return _fault(code, f"forward returned {_kind(result)} where the reference returns {expected}")
    for index, (tensor, spec, stride) in enumerate(zip(tensors, specs, strides)):
        label = "the output" if len(specs) == 1 else f"output {index}"
        if type(tensor) not in _PLAIN:
            # A subclass may compute when it is read, which is when nobody's clock runs.
            kind = type(tensor).__name__
            return _fault("wrong_type", f"{label} is a {kind}, a subclass; return a plain torch.Tensor")
        if _layout(tensor) is not torch.strided:
            return _fault("wrong_layout", f"{label} has layout {_layout(tensor)}, not torch.strided")
        if _device(tensor).type != device.type:
            return _fault("wrong_device", f"{label} is on {_device(tensor)}, not on {device}")
        if tuple(base_shape(tensor)) != spec.shape:
            return _fault("wrong_shape", f"{label} has shape {tuple(base_shape(tensor))}, not {spec.shape}")
        if dtype_name(_dtype(tensor)) != spec.dtype:
            return _fault("wrong_dtype", f"{label} is {dtype_name(_dtype(tensor))}, not {spec.dtype}")
        if not (_strided_alike(tensor, stride) or is_dense(tensor)):
            detail = f"{label} has strides {tuple(base_stride(tensor))}, with gaps or overlaps, where the reference's has "
            return _fault("wrong_layout", f"{detail}{tuple(stride)}; end forward with .contiguous()")
        if stride is not None and not is_as_it_lies(tensor):
            # What is left of the work would be done as it is copied, which is when nobody's clock runs.
            detail = f"{label} is a view that is computed when it is read; end forward with .resolve_conj().resolve_neg()"
            return _fault("wrong_layout", detail)
        if not _is_in_its_storage(tensor):
            return _fault("wrong_layout", f"{label} reaches beyond the storage that it says it has")
        if base_count(tensor) and _meets(_storage(tensor), slot):
            return _fault("aliases_input", f"{label} is a view of an input, not memory of its own")
    return None


@_without_modes
def lie_in_order(tensors: Sequence[torch.Tensor], strides: Sequence[Sequence[int] | None]) -> bool:
    """Whether outputs without fault lie in memory in the reference's order."""
    return all(map(_strided_alike, tensors, strides))


@_without_modes
def in_order(result: Any, specs: Sequence[TensorSpec], strides: Sequence[Sequence[int] | None]) -> Any:
    """`result` with each output that is dense in another order copied to the reference's; anything else as it is.

    It runs within the timed window, before any gate: what it does not expect it leaves for those to find.
    """
    try:
        skeleton, tensors = tree.flatten(result)
    except TypeError:
        return result
    if len(tensors) != len(specs):
        return result
    placed = [_placed(tensor, spec, stride) for tensor, spec, stride in zip(tensors, specs, strides)]
    return tree.rebuild(skeleton, placed)


def _placed(tensor: torch.Tensor, spec: TensorSpec, stride: Sequence[int] | None) -> torch.Tensor:
    if (
        type(tensor) not in _PLAIN or _layout(tensor) is not torch.strided or tuple(base_shape(tensor)) != spec.shape
        or _dtype(tensor) is not spec.torch_dtype or _strided_alike(tensor, stride) or not is_dense(tensor)
    ):
        return tensor
    place = _empty_strided(spec.shape, tuple(stride), dtype=spec.torch_dtype, device=_device(tensor))
    return _copy(place, _detach(tensor))


def take(result: Any, outbox: list[torch.Tensor], stream: int | None) -> list[Any]:
    """Copy the tensors into `outbox` and overwrite their storages; returns the plain values among the outputs."""
    skeleton, tensors = tree.flatten(result)
    take_tensors(tensors, outbox, stream)
    return tree.values_of(skeleton)


@_without_modes
def take_tensors(tensors: Sequence[torch.Tensor], outbox: list[torch.Tensor], stream: int | None) -> None:
    """`take` of tensors alone."""
    for tensor, place in zip(tensors, outbox):
        _copy(place, _detach(tensor))  # a graph that forward left on it would be kept with the place
    overwrite(tensors, stream)


def overwrite(tensors: Sequence[torch.Tensor], stream: int | None) -> None:
    """Write 0xFF over the storages of the tensors."""
    for tensor in tensors:
        storage = _storage(tensor)
        size_bytes = _nbytes(storage)
        if not size_bytes:
            continue
        if stream is None:
            _memset(_data_ptr(storage), _OVERWRITE, size_bytes)
        else:
            _fill_bytes(stream, _data_ptr(storage), _OVERWRITE, size_bytes)


def _meets(storage: torch.UntypedStorage, slot: range) -> bool:
    begin = _data_ptr(storage)
    return begin < slot.stop and slot.start < begin + _nbytes(storage)


def _is_in_its_storage(tensor: torch.Tensor) -> bool:
    """Whether a storage has the bytes of all elements: of what it does not own up to nothing is overwritten."""
    if not base_count(tensor):
        return True
    last = sum((size - 1) * stride for size, stride in zip(base_shape(tensor), base_stride(tensor)))
    return (_offset(tensor) + last + 1) * _dtype(tensor).itemsize <= _nbytes(_storage(tensor))


def _strided_alike(tensor: torch.Tensor, stride: Sequence[int] | None) -> bool:
    """Whether elements lie in memory as the reference's do; a dimension of one element has no say.

    `stride` is None where the reference's own output has gaps or overlaps, which nothing fresh can match.
    """
    if stride is None or base_count(tensor) == 0:
        return True
    return all(size == 1 or own == other for size, own, other in zip(base_shape(tensor), base_stride(tensor), stride))


def _count(shape: Any) -> int | None:
    """How many tensors a structure stands for at its top; None for what is no tensor and holds none."""
    if isinstance(shape, list):
        return len(shape) if "tensor" in shape else None
    return 1 if shape == "tensor" else None


def _fault(code: str, detail: str) -> dict[str, str]:
    return {"code": code, "detail": detail}


def _kind(result: Any) -> str:
    if result is None:
        return "None"
    if isinstance(result, torch.Tensor):
        return "a tensor"
    count = f" of {len(result)}" if isinstance(result, (list, tuple)) else ""
    return f"a {type(result).__name__}{count}"


class Guard:
    """A pattern behind the outputs of a launch on a GPU: what is written past the end of one is found afterwards.

    PyTorch's allocator reuses the block that was freed last for the same size. So before a launch that is made alone a
    block as large as the output is given the pattern at its end and freed; where the output then lies in it, the bytes
    between the output's end and the block's must still hold the pattern. No kernel has business there. That is said
    only of a `forward` that allocated its outputs and nothing else: a temporary may have lain in the same place.
    """

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
