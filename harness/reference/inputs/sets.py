"""One launch's inputs, drawn afresh and packed into the bytes that cross the sandbox.

A set is drawn on the device itself, by the reference's own `get_inputs`, under a seed of its own from the operating
system. The seed stays beside the inputs in the judge, so that a launch that failed can be made again afterwards.
"""

from __future__ import annotations

import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from harness.model.errors import InputError
from harness.protocol import tree
from harness.protocol.digest import digest_of
from harness.protocol.layout import TensorSpec, fill, overlaps, plan, region_bytes, without_strides
from harness.reference.inputs.families import GIVEN, Family

_COMPARED_AT_ONCE = 1 << 26  # words: 64 MiB for what is found of them
_IN_ONE_STEP_BYTES = 8 << 20  # of larger regions the copies take longer than the calls


class Inputs:
    """One launch's inputs: `region` is uint8 of the bytes that `specs` describe, `seed` what they were drawn under."""

    skeleton: Any
    specs: tuple[TensorSpec, ...]
    region: torch.Tensor
    family: Family
    seed: int
    is_slice = False

    @property
    def size_bytes(self) -> int:
        """Of the region, without looking at it."""
        return region_bytes(self.specs)

    def tensors(self, region: torch.Tensor | None = None) -> list[torch.Tensor]:
        """Fresh views of the tensors, in this set's own bytes or in another region laid out alike."""
        region = self.region if region is None else region
        return [spec.view(region) for spec in self.specs]

    def arguments(self, region: torch.Tensor | None = None) -> list[Any]:
        return tree.rebuild(self.skeleton, self.tensors(region))

    def digest(self) -> str:
        """16 hex digits over the bytes, found on the device."""
        return digest_of(self.region)

    def digests(self) -> list[str]:
        """The same of each tensor that has elements."""
        taken = [spec for spec in self.specs if spec.size_bytes]
        # Between the tensors lie zeros, up to the next multiple of more than a word.
        return [digest_of(self.region[spec.offset : spec.offset + -(-spec.size_bytes // 8) * 8]) for spec in taken]


@dataclass(frozen=True)
class InputSet(Inputs):
    """Inputs that the judge keeps; `overlapping` is whether elements overlapped as drawn, which they do not here."""

    skeleton: Any
    specs: tuple[TensorSpec, ...]
    region: torch.Tensor
    family: Family
    seed: int = 0
    overlapping: bool = False
    is_slice: bool = False  # of a larger set's batch


@dataclass(frozen=True)
class RedrawnInputs(Inputs):
    """Inputs that nobody keeps: each look at `region` draws them again under their seed, by `draw(family, seed)`."""

    skeleton: Any
    specs: tuple[TensorSpec, ...]
    family: Family
    seed: int
    draw: Callable[[Family, int], InputSet]

    @property
    def region(self) -> torch.Tensor:
        return self.draw(self.family, self.seed).region


def fresh_seed() -> int:
    """One of the operating system's."""
    return secrets.randbits(63)


def draw_inputs(get_inputs: Callable[[], Any], device: torch.device, seed: int) -> tuple[Any, list[torch.Tensor]]:
    """Call `get_inputs` under `seed` on `device`; returns (skeleton, tensors).

    Raises InputError when it raises, or returns what cannot cross to a candidate; but what a device says that has no room
    for it now, since that may be the doing of whoever has its memory.
    """
    _seed(seed, device)
    try:
        with torch.device(device):
            inputs = get_inputs()
        skeleton, tensors = tree.flatten(list(inputs))
        kind = next(filter(None, map(without_strides, tensors)), None)
        if kind is None:
            return skeleton, [_plain(tensor, device) for tensor in tensors]
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise InputError(f"get_inputs() of the reference failed: {type(error).__name__}: {error}") from error
    raise InputError(
        f"get_inputs() of the reference returns a {kind} tensor, which has no place in memory that a candidate could be "
        "given", hint="Return its dense form, or its parts, and have forward put them together",
    )


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
    get_inputs: Callable[[], Any], device: torch.device, family: Family = GIVEN,
    contracted: Sequence[int] | None = None, specs: tuple[TensorSpec, ...] | None = None, seed: int | None = None, *,
    transient: bool = False,
) -> InputSet:
    """Draw, transform into `family` and pack. `specs`, when given, is the layout that the draw must have.

    Only floating-point tensors are transformed. `seed` is for a draw that is made again; a new one has the operating
    system's, and the random part of a family follows from it too. A `transient` one is gone before the next is drawn, so
    that a tensor which is as long as its region may be that region.
    """
    seed = fresh_seed() if seed is None else seed
    skeleton, tensors = draw_inputs(get_inputs, device, seed)
    overlapping = specs is None and any(map(overlaps, tensors))
    if specs is None:
        specs = plan(tensors)
    elif not _fit(tensors, specs) and plan(tensors) != specs:
        raise InputError("get_inputs() of the reference returns other shapes or types from one call to the next")
    if family is not GIVEN:
        drawn, tensors = tensors, list(family.applied(skeleton, tensors, contracted))
        transient |= all(new is not old for new, old in zip(tensors, drawn))  # new ones are nobody else's
        del drawn
    return InputSet(skeleton, specs, _packed(tensors, specs, device, transient=transient), family, seed, overlapping)


def slice_of(inputs: Inputs, tensors: Sequence[torch.Tensor]) -> InputSet:
    """A set of its own of `tensors`, which are a slice of those of `inputs`."""
    specs = plan(tensors)
    region = _packed(list(tensors), specs, tensors[0].device)
    return InputSet(inputs.skeleton, specs, region, inputs.family, inputs.seed, is_slice=True)


class Answers(Sequence[bool]):
    """What a device says of each of several things; it is waited for when the first answer is looked at."""

    def __init__(self, answers: torch.Tensor) -> None:
        self._found = answers

    @functools.cached_property
    def _known(self) -> list[bool]:
        return self._found.tolist()

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: int) -> bool:
        return self._known[index]


def still_hold(regions: Sequence[torch.Tensor], sets: Sequence[Inputs]) -> Sequence[bool]:
    """Of each region (uint8) whether it begins now with the bytes of its set, all of one layout."""
    if not sets:
        return []
    size_bytes = sets[0].size_bytes
    if len(sets) * size_bytes // 8 > _COMPARED_AT_ONCE:
        return Answers(torch.stack([_begins_with(*pair) for pair in zip(regions, sets)]))
    differing = torch.empty(len(sets), size_bytes // 8, dtype=torch.bool, device=regions[0].device)
    for row, region, inputs in zip(differing.unbind(), regions, sets):
        torch.ne(region[:size_bytes].view(torch.int64), inputs.region.view(torch.int64), out=row)
    return Answers(~differing.any(dim=1))


def _begins_with(region: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Whether a region begins with the bytes of a set, which the device says and nobody waits for; in parts, for room."""
    words = inputs.region.view(torch.int64)
    now = region[: inputs.size_bytes].view(torch.int64)
    parts = zip(now.split(_COMPARED_AT_ONCE), words.split(_COMPARED_AT_ONCE))
    return torch.stack([(one == other).all() for one, other in parts]).all()


def _fit(tensors: Sequence[torch.Tensor], specs: Sequence[TensorSpec]) -> bool:
    """Whether `specs` are seen to be the plan for `tensors` without making one, which is most of a draw's Python."""
    return len(tensors) == len(specs) and all(
        tensor.dtype is spec.torch_dtype and tensor.shape == spec.shape and tensor.stride() == spec.stride
        for tensor, spec in zip(tensors, specs)
    )


def _packed(
    tensors: list[torch.Tensor], specs: tuple[TensorSpec, ...], device: torch.device, *, transient: bool = False
) -> torch.Tensor:
    """A region with the tensors in their places and zeros between and behind them; takes them out of the list."""
    size_bytes = region_bytes(specs)
    gaps, types = _gaps(specs, size_bytes), {tensor.dtype for tensor in tensors}
    if len(types) == 1 and size_bytes <= _IN_ONE_STEP_BYTES and all(
        tensor.is_contiguous() and tensor.stride() == spec.stride for tensor, spec in zip(tensors, specs)
    ):
        (dtype,) = types
        zeros, parts = _zeros(max(end - start for start, end in gaps) // dtype.itemsize, dtype, device), []
        for tensor, (start, end) in zip(tensors, gaps):
            parts.append(tensor.view(-1))
            if end > start:
                parts.append(zeros[: (end - start) // dtype.itemsize])
        return torch.cat(parts).view(torch.uint8)
    if not specs:
        return torch.zeros(size_bytes, dtype=torch.uint8, device=device)
    is_whole = len(specs) == 1 and specs[0].size_bytes == size_bytes and specs[0].stride == tensors[0].stride()
    if transient and is_whole and tensors[0].is_contiguous():
        return tensors[0].view(-1).view(torch.uint8)
    region = torch.empty(size_bytes, dtype=torch.uint8, device=device)
    for spec, (start, end) in zip(specs, gaps):
        if spec.has_gaps:  # what the allocator left there is nobody's business
            region[spec.offset : spec.offset + spec.size_bytes].zero_()
        fill(spec.view(region), tensors.pop(0))  # each goes when it was copied: together they may be half of a device
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
