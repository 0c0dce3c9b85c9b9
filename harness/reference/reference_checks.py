"""What is looked for in a reference before anything is held against it, at one set of sizes.

A reference that nothing can be compared with is refused in a sentence. One that is judged, and cannot show what a
candidate computes, is told by a note on the problem.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.parameter import is_lazy
from harness.model.errors import InputError
from harness.model.files.yaml_lines import YAML_SUFFIXES, read_yaml
from harness.model.problem import Problem
from harness.protocol import tree
from harness.protocol.layout import TensorSpec, without_strides
from harness.reference.accuracy.bounds import error_unit, fp32_bounds
from harness.reference.inputs.sets import InputSet
from harness.reference.spreads import evenly_spaced, in_rows, row_scale, with_arithmetic, without_small

# Draws whose outputs are all the same before a problem is said to have one output; two of a yes or a no are so by chance.
_SAME_DRAWS = 8
# Within so many u two outputs are one: that much eager itself may differ by from call to call.
_SAME_U = 8.0
# Of an output at most about so many elements are kept to compare the next draws' with; all of one row at least.
_SAMPLED = 1 << 22
# Elements looked at in one step.
_AT_ONCE = 1 << 24
# What two calls in float64 may differ by, in u of fp32, as much as any bound allows at least. Where nothing but the order
# of sums differs it is a hundred-millionth of that.
_RANDOM_U = 8.0
_CALLS = 4
NOT_SHORT_S = 0.05


def refuse_lazy(model: torch.nn.Module, path: Path) -> None:
    """Raise InputError where parameters have no shape before the first call."""
    names = [name for name, tensor in (*model.named_parameters(), *model.named_buffers()) if is_lazy(tensor)]
    if names:
        raise InputError(
            f"Model of the reference has a parameter without a shape before its first call ({names[0]}), which no "
            "candidate can be given", path, hint="Name its sizes, as in nn.Linear(in_features, …) for nn.LazyLinear",
        )


def refuse_contracted(problem: Problem, specs: Sequence[TensorSpec]) -> None:
    """Raise InputError, with the line of the YAML, where `accuracy.contracted` does not fit the inputs in `specs`."""
    contracted = problem.accuracy.contracted
    factors = [spec for spec in specs if spec.torch_dtype.is_floating_point]
    shapes = " and ".join(str(list(spec.shape)) for spec in factors) or "none"
    if len(contracted) != len(factors):
        raise _of_contracted(
            problem, len(contracted) - 1, f"names {len(contracted)} axes, and the reference has {len(factors)} "
            f"floating-point input{'' if len(factors) == 1 else 's'} ({shapes})",
        )
    for index, (axis, spec) in enumerate(zip(contracted, factors)):
        if axis >= len(spec.shape):
            raise _of_contracted(
                problem, index, f"[{index}] is {axis}, and input {index + 1} has {len(spec.shape)} axes, counted from 0 "
                f"({list(spec.shape)})",
            )
    other = next((spec for spec in factors if len(spec.shape) != 2), None)
    if other is not None:
        raise _of_contracted(problem, 0, f"is for products of matrices, and an input has the shape {list(other.shape)}")


def _of_contracted(problem: Problem, index: int, fault: str) -> InputError:
    keys = ("accuracy", "contracted", index)
    is_yaml = problem.path.suffix in YAML_SUFFIXES and problem.path.is_file()
    space = "" if fault.startswith("[") else " "
    return InputError(
        f"accuracy.contracted{space}{fault}", problem.path, read_yaml(problem.path).line_of(keys) if is_yaml else None,
        hint="Name the axis of each factor that is summed over, or leave contracted out where this is no product",
    )


def outputs_of(model: torch.nn.Module, inputs: InputSet, state: Mapping[str, torch.Tensor], path: Path) -> tuple[
    list[torch.Tensor], Any
]:
    """What `model` returns on `inputs`: its tensors as they are, and their skeleton. `state` has its own tensors.

    Raises InputError where it raises, writes to its inputs, or returns what no candidate could be held to.
    """
    before = inputs.digest()
    try:
        with torch.no_grad():
            returned = model(*inputs.arguments())
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        raise InputError(
            f"Model of the reference cannot run on its own inputs: {type(error).__name__}: {error}", path
        ) from error
    try:
        skeleton, tensors = tree.flatten(returned)
    except TypeError as error:
        raise InputError(
            f"Model of the reference returns what cannot be compared: {error}", path,
            hint="Return tensors and numbers, in lists, tuples or dicts with words as keys",
        ) from error
    if inputs.digest() != before:
        raise InputError(
            "Model of the reference writes to its own inputs, which a candidate may not do", path,
            hint="Let it return new tensors",
        )
    _refuse_form(tensors, inputs, state, path)
    return tensors, skeleton


def _refuse_form(
    tensors: Sequence[torch.Tensor], inputs: InputSet, state: Mapping[str, torch.Tensor], path: Path
) -> None:
    if not tensors:
        raise InputError(
            "Model of the reference returns no tensor, and plain values alone have no accuracy rule", path,
            hint="Return a tensor, as before .item() or .tolist()",
        )
    kind = next(filter(None, map(without_strides, tensors)), None)
    if kind is not None:
        raise InputError(
            f"Model of the reference returns a {kind} tensor, for whose form there is no comparison", path,
            hint="Return its dense form, or its parts",
        )
    if any(tensor.is_complex() for tensor in tensors):
        raise InputError(
            "Model of the reference returns complex numbers, for which there is no accuracy rule", path,
            hint="Return torch.view_as_real(…) of them",
        )
    given = inputs.region.untyped_storage().data_ptr()
    owners = {tensor.untyped_storage().data_ptr(): name for name, tensor in state.items() if tensor.numel()}
    for tensor in tensors:
        place = tensor.untyped_storage().data_ptr()
        if not tensor.numel():
            continue
        if place == given:
            raise InputError(
                "Model of the reference returns an input, or a view of one, as a candidate may not do: what was given "
                "belongs to the caller", path, hint="Let it return a copy, as .clone() makes it, or leave that output out",
            )
        if place in owners:
            raise InputError(
                f"Model of the reference returns its own parameter or buffer {owners[place]}, and what is returned is "
                "written over", path, hint="Let it return a copy, as .clone() makes it",
            )


def refuse_other_shapes(tensors: Sequence[torch.Tensor], specs: Sequence[TensorSpec], path: Path) -> None:
    """Raise InputError where the outputs of one draw have other shapes than those of the first, `specs`."""
    shapes = [tuple(tensor.shape) for tensor in tensors]
    known = [spec.shape for spec in specs]
    if shapes != known:
        one, other = next(((a, b) for a, b in zip(known, shapes) if a != b), (len(known), len(shapes)))
        raise InputError(
            f"Model of the reference returns an output whose shape follows the values of its inputs: {one} for one draw, "
            f"{other} for another", path, hint="Return a tensor of one shape: pad it, and return how much of it counts",
        )


def moved_names(model: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> tuple[str, ...]:
    """The names in the state of `model` whose values are no longer those of `state`."""
    now = model.state_dict()
    return tuple(name for name, tensor in state.items() if not torch.equal(_bytes_of(now[name]), _bytes_of(tensor)))


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """Its bytes: by value a NaN would differ from itself."""
    return tensor.detach().reshape(-1).view(torch.uint8)


def call_to_call_u(
    first: Sequence[torch.Tensor], call: Callable[[], Sequence[torch.Tensor]],
    call64: Callable[[], Sequence[torch.Tensor]] | None, longest_sum: int, path: Path,
) -> tuple[float, ...]:
    """By how much the outputs of a few calls on the same inputs differ from `first`, in u, one for each output.

    It is 0 for nearly all; sums by atomics are in another order each time. Raises InputError for a reference that is
    random: `call64` is a call in float64, where rounding is no longer seen and chance is. Where there is none, two calls may
    differ by as much as sums of that length may.
    """
    gaps = _distances(first, call())
    if not any(gaps):
        return tuple(gaps)
    if call64 is not None:
        is_random = max(_distances(call64(), call64(), unit=error_unit("float32"))) > _RANDOM_U
    else:
        is_random = max(gaps) > fp32_bounds(0.0, 0.0, float(longest_sum), exact=False).max_u
    if is_random:
        raise InputError(
            f"Model of the reference is random: two calls on the same inputs differ by {max(gaps):.3g} u (dropout in "
            "train mode? a state that is drawn, or kept from call to call?)", path,
            hint="Call self.eval() at the end of __init__, or leave the random part out",
        )
    for _ in range(_CALLS - 2):
        gaps = [max(pair) for pair in zip(gaps, _distances(first, call()))]
    return tuple(gaps)


def seconds_of(call: Callable[[], object], device: torch.device, *, times: int = 2) -> float:
    """How long `call` takes on `device`; a short one is made so many `times`, since the first may load its kernels."""
    seconds = math.inf
    if device.type == "cuda":
        torch.cuda.synchronize(device)  # what was begun before is not its own
    for _ in range(times):
        began = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds = min(seconds, time.perf_counter() - began)
        if seconds > NOT_SHORT_S:
            break
    return seconds


def is_same_for_all_draws(
    first: Sequence[torch.Tensor], outputs_of_another: Callable[[], Sequence[torch.Tensor]], *, by_median: bool = False
) -> bool:
    """Whether the outputs of other draws are those of the `first`, within a few u; most differ at the first look.

    With `by_median` no row's scale is smaller than what a launch is judged by where no YAML says how long sums are: in a
    mask of -1e9 the few rows that are not masked are lost as well.
    """
    kept = [sampled(tensor).clone() for tensor in first]
    least = [_least_scale(rows) if by_median else 0.0 for rows in kept]
    for _ in range(_SAME_DRAWS - 1):
        other = [sampled(tensor) for tensor in outputs_of_another()]
        if any(distance_u(*each[:2], least=each[2]) > _SAME_U for each in zip(kept, other, least)):
            return False
    return True


def _least_scale(rows: torch.Tensor) -> float:
    return float(without_small(row_scale(rows)).amin()) if rows.is_floating_point() and rows.numel() else 0.0


def sampled(tensor: torch.Tensor) -> torch.Tensor:
    """Rows of `tensor`, evenly spaced, so that about four million elements are left, or one row."""
    return evenly_spaced(tensor, _SAMPLED)


def _distances(first: Sequence[torch.Tensor], other: Sequence[torch.Tensor], unit: float | None = None) -> list[float]:
    return [
        0.0 if torch.equal(*map(with_arithmetic, pair)) else distance_u(*map(in_rows, pair), unit) for pair in zip(first, other)
    ]


def distance_u(first: torch.Tensor, other: torch.Tensor, unit: float | None = None, *, least: float = 0.0) -> float:
    """The largest difference of two outputs, as rows × elements, in u of the largest magnitude in its row, or of `least`.

    It is infinite where whole numbers differ, or one element is finite and the other is not. `unit` is that of their dtype
    by default.
    """
    if first.numel() == 0:
        return 0.0
    if not first.is_floating_point():
        return 0.0 if torch.equal(first, other) else math.inf
    unit = unit or error_unit(str(first.dtype).removeprefix("torch."))
    at_once = max(1, _AT_ONCE // first.shape[1])
    return max(_largest(*pair, least) for pair in zip(first.split(at_once), other.split(at_once))) / unit


def _largest(first: torch.Tensor, other: torch.Tensor, least: float) -> float:
    """The largest difference over the largest finite magnitude in its row, which counts as `least` at the least."""
    first, other = first.double(), other.double()
    scale = torch.where(first.isfinite(), first.abs(), 0.0).amax(dim=1, keepdim=True).clamp(min=least)
    alike = (first == other) | (first.isnan() & other.isnan())
    apart = torch.where(alike, 0.0, (first - other).abs() / scale)
    return float(torch.nan_to_num(apart, nan=math.inf, posinf=math.inf).amax())
