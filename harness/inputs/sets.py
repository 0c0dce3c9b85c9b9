"""One launch's inputs, drawn afresh and packed into the bytes that cross the wall.

A set is drawn on the device itself, by the reference's own `get_inputs`, under a seed of its own from the operating
system. The seed stays beside the inputs in the referee, so that a launch that failed can be made again afterwards.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.errors import InputError
from harness.inputs.families import GIVEN, Family
from harness.wire import tree
from harness.wire.layout import TensorSpec, plan, region_bytes

_WORDS_AT_ONCE = 1 << 22
_IN_ONE_STEP_BYTES = 8 << 20  # of larger regions the copies take longer than the calls
_ODD = 0x9E3779B97F4A7C15  # 2⁶⁴ over the golden ratio: spreads the first sum over all 64 bits


@dataclass(frozen=True)
class InputSet:
    """The referee's own copy of one launch's inputs: `region` is uint8 of the bytes that `specs` describe, `seed` what
    they were drawn under.
    """

    skeleton: Any
    specs: tuple[TensorSpec, ...]
    region: torch.Tensor
    family: Family
    seed: int = 0

    def tensors(self, region: torch.Tensor | None = None) -> list[torch.Tensor]:
        """Fresh views of the tensors, in this set's own bytes or in another region laid out alike."""
        return [spec.view(self.region if region is None else region) for spec in self.specs]

    def arguments(self, region: torch.Tensor | None = None) -> list[Any]:
        return tree.rebuild(self.skeleton, self.tensors(region))

    def digest(self) -> str:
        """16 hex digits over the bytes, found on the device: two sums of the words, one weighted by position."""
        total = 0
        for piece, words in enumerate(self.region.view(torch.int64).split(_WORDS_AT_ONCE), 1):
            weights = torch.arange(1, 2 * words.numel(), 2, device=words.device)
            total += piece * (int(words.sum()) * _ODD + int((words * weights).sum()))
        return f"{total % (1 << 64):016x}"


def draw_inputs(get_inputs: Callable[[], Any], device: torch.device, seed: int) -> tuple[Any, list[torch.Tensor]]:
    """Call `get_inputs` under `seed` on `device`; returns (skeleton, tensors).

    Raises InputError when it raises, or returns what cannot cross to a candidate.
    """
    _seed(seed, device)
    try:
        with torch.device(device):
            inputs = get_inputs()
        skeleton, tensors = tree.flatten(list(inputs))
    except Exception as error:
        raise InputError(f"get_inputs() of the reference failed: {type(error).__name__}: {error}") from error
    return skeleton, [_plain(tensor, device) for tensor in tensors]


def _plain(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """`tensor` on `device` without a graph: mostly it is that already, and a step takes longer than to see it."""
    if tensor.requires_grad or tensor.device != device:
        return tensor.detach().to(device)
    return tensor


def _seed(seed: int, device: torch.device) -> None:
    """`torch.manual_seed` for the generators that a draw can reach.

    That function seeds every kind of accelerator, and formats a traceback for each kind that is not there: a
    millisecond a draw, and there are two draws to each timed launch.
    """
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.init()
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)


def draw_set(
    get_inputs: Callable[[], Any],
    device: torch.device,
    family: Family = GIVEN,
    contracted: Sequence[int] | None = None,
    specs: tuple[TensorSpec, ...] | None = None,
    seed: int | None = None,
) -> InputSet:
    """Draw, transform into `family` and pack. `specs`, when given, is the layout that the draw must have.

    Only floating-point tensors are transformed. `seed` is for a draw that is made again; a new one has the operating
    system's, and the random part of a family follows from it too.
    """
    seed = secrets.randbits(63) if seed is None else seed
    skeleton, tensors = draw_inputs(get_inputs, device, seed)
    if family is not GIVEN:
        tensors = family.applied(skeleton, tensors, contracted)
    if specs is None:
        specs = plan(tensors)
    elif not _fit(tensors, specs) and plan(tensors) != specs:
        raise InputError("get_inputs() of the reference returns other shapes or types from one call to the next")
    return InputSet(skeleton, specs, _packed(tensors, specs, device), family, seed)


class Answers(Sequence[bool]):
    """What a device says of each of several things; it is waited for when the first answer is looked at."""

    def __init__(self, found: torch.Tensor) -> None:
        self._found = found

    @functools.cached_property
    def _known(self) -> list[bool]:
        return self._found.tolist()

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: int) -> bool:
        return self._known[index]


def still_hold(regions: Sequence[torch.Tensor], sets: Sequence[InputSet]) -> Sequence[bool]:
    """Of each region (uint8) whether it begins now with the bytes of its set, all of one layout."""
    if not sets:
        return []
    size_bytes = sets[0].region.numel()
    differing = torch.empty(len(sets), size_bytes // 8, dtype=torch.bool, device=sets[0].region.device)
    for row, region, inputs in zip(differing.unbind(), regions, sets):
        torch.ne(region[:size_bytes].view(torch.int64), inputs.region.view(torch.int64), out=row)
    return Answers(~differing.any(dim=1))


def _fit(tensors: Sequence[torch.Tensor], specs: Sequence[TensorSpec]) -> bool:
    """Whether `specs` are seen to be the plan for `tensors` without making one, which is most of a draw's Python."""
    return len(tensors) == len(specs) and all(
        tensor.dtype is spec.torch_dtype and tensor.shape == spec.shape and tensor.stride() == spec.stride
        for tensor, spec in zip(tensors, specs)
    )


def _packed(tensors: Sequence[torch.Tensor], specs: tuple[TensorSpec, ...], device: torch.device) -> torch.Tensor:
    """A region with the tensors in their places and zeros between and behind them."""
    size_bytes = region_bytes(specs)
    gaps, types = _gaps(specs, size_bytes), {tensor.dtype for tensor in tensors}
    if len(types) == 1 and size_bytes <= _IN_ONE_STEP_BYTES and all(tensor.is_contiguous() for tensor in tensors):
        (dtype,) = types
        zeros, parts = _zeros(max(end - start for start, end in gaps) // dtype.itemsize, dtype, device), []
        for tensor, (start, end) in zip(tensors, gaps):
            parts.append(tensor.view(-1))
            if end > start:
                parts.append(zeros[: (end - start) // dtype.itemsize])
        return torch.cat(parts).view(torch.uint8)
    if not specs:
        return torch.zeros(size_bytes, dtype=torch.uint8, device=device)
    region = torch.empty(size_bytes, dtype=torch.uint8, device=device)
    for spec, tensor, (start, end) in zip(specs, tensors, gaps):
        spec.view(region).copy_(tensor)
        region[start:end].zero_()
    return region


@functools.lru_cache(maxsize=8)
def _zeros(elements: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.zeros(elements, dtype=dtype, device=device)


@functools.lru_cache(maxsize=64)
def _gaps(specs: tuple[TensorSpec, ...], size_bytes: int) -> tuple[tuple[int, int], ...]:
    """What lies behind each tensor in a region of `size_bytes`, up to the next one: (start, end) in bytes."""
    starts = [*(spec.offset for spec in specs[1:]), size_bytes]
    return tuple((spec.offset + spec.size_bytes, start) for spec, start in zip(specs, starts))
