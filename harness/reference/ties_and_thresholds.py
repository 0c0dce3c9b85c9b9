"""Elements that another honest evaluation of the reference has otherwise: ties, and values at a threshold.

A rounding error moves a number across the point where it rounds to another integer, or is greater than a limit, and the
index of the largest of two equal numbers is either. Such an element is right if it can be shown to lie there: by the
numbers the index points at, or by the reference itself with its thresholds moved by what eager rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from harness.reference.differences import Difference, difference
from harness.reference.element_errors import errors_over
from harness.reference.expected import Truth
from harness.reference.inputs.sets import InputSet

if TYPE_CHECKING:
    from harness.reference.reference_model import Reference

# Of the errors that eager makes in a row, so many times the largest is what honest arithmetic may.
_MARGIN = 4.0
# A number by itself may be off by so many units of its own roundoff, as after a division by a product with the inverse.
_OWN_U = 4.0 * 2.0**-24
# At a threshold there are few: a share of all elements, and a handful of a small output.
_SHARE, _HANDFUL = 1 / 256, 4
_NEAR = 1 / 8  # of a step between whole numbers

_INDICES = (torch.int64, torch.int32)
_JUMPS = (
    "round", "floor", "ceil", "trunc", "sign", "sgn", "heaviside", "floor_divide", "__floordiv__", "bucketize", "hardshrink",
    "gt", "lt", "ge", "le", "greater", "less", "greater_equal", "less_equal", "__gt__", "__lt__", "__ge__", "__le__",
)
# Casts to whole numbers cut what is behind the point; these say by name to which.
_CASTS, _CASTS_BY_NAME = ("to", "type", "type_as"), ("char", "byte", "short", "int", "long")
# Functions whose result is an index, or values and an index, along a dimension; of some an index for each place in a line,
# of no later one.
_CUMULATIVE = ("cummax", "cummin")
_CHOICES = ("argmax", "argmin", "max", "min", "topk", "sort", "argsort", "kthvalue", "median", *_CUMULATIVE)


@dataclass(frozen=True)
class _Call:
    """A call that chooses or jumps: what it was given first, along which dimension (None: of all), and its index.

    `is_cast` says that it cuts numbers to whole ones, `is_cumulative` that it chooses for each place of a line.
    """

    given: torch.Tensor
    dim: int | None
    index: torch.Tensor | None
    is_cast: bool = False
    is_cumulative: bool = False


class _Watched(TorchFunctionMode):
    """Keeps calls of the functions `names` in `calls`, and adds `moves`, where given, to what each is given first."""

    def __init__(self, names: Sequence[str], moves: Sequence[torch.Tensor] = ()) -> None:
        super().__init__()
        self._names, self._moves = names, list(moves)
        self.calls: list[_Call] = []

    def __torch_function__(self, function, types_, arguments=(), named=None):
        named = named or {}
        name = getattr(function, "__name__", "")
        if not arguments or not isinstance(arguments[0], torch.Tensor):
            return function(*arguments, **named)
        given = arguments[0]
        is_cast = self._names is _JUMPS and _is_cast_to_whole(name, given, arguments[1:], named)
        if name not in self._names and not is_cast:
            return function(*arguments, **named)
        if self._moves and given.is_floating_point():
            arguments = (given + self._moves[len(self.calls)], *arguments[1:])
        made = function(*arguments, **named)
        index = None if is_cast else _index_in(name, made)
        self.calls.append(_Call(given, _dimension_of(name, arguments, named), index, is_cast, name in _CUMULATIVE))
        return made


def excused(
    reference: Reference, inputs: InputSet, truth: Truth, got: torch.Tensor, number: int, allowed_u: float
) -> Difference | None:
    """The difference of output `number` without the elements over `allowed_u` that are at an edge; None without any."""
    expected, scale = truth.outputs[number], truth.scales[number]
    try:
        wrong, _ = errors_over(got, expected, scale, allowed_u)
        right = _chosen_alike(reference, inputs, got, expected, number) if got.dtype in _INDICES else None
        if right is not None:
            return difference(got, torch.where(wrong & right, got, expected), None) if bool((wrong & right).any()) else None
        if int(wrong.sum()) > max(_HANDFUL, _SHARE * wrong.numel()):
            return None
        others = [each[number] for each in _at_moved_thresholds(reference, inputs)]
    except Exception:  # no room for it, or a model that cannot be looked into: then nothing speaks for these elements
        return None
    nearest = _nearest(got, expected, scale, others, allowed_u)
    return None if nearest is expected else difference(got, nearest, scale)


def _nearest(
    got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None, evaluations: Sequence[torch.Tensor],
    allowed_u: float,
) -> torch.Tensor:
    """`expected` with the values of another evaluation where `got` is over `allowed_u` from it and not from that."""
    for other in evaluations:
        other = other.to(expected.dtype)
        wrong, _ = errors_over(got, expected, scale, allowed_u)
        right = wrong & ~errors_over(got, other, scale, allowed_u)[0]
        if bool(right.any()):
            expected = torch.where(right, other, expected)
    return expected


def _at_moved_thresholds(reference: Reference, inputs: InputSet) -> list[list[torch.Tensor]]:
    """Outputs of the reference in float64, and in it with all that meets a threshold moved up, and down, by what eager
    may be off there; of strict eager too. Empty where the reference has no thresholds, or others in float64.
    """
    eager, wide = _Watched(_JUMPS), _Watched(_JUMPS)
    outputs = [reference.outputs_under(eager, inputs, in_float64=False), reference.outputs_under(wide, inputs)]
    if not wide.calls or [call.given.shape for call in eager.calls] != [call.given.shape for call in wide.calls]:
        return outputs if _differ(*outputs) else []
    moves = [_move(*pair) for pair in zip(eager.calls, wide.calls)]
    for sign in (1, -1):
        outputs.append(reference.outputs_under(_Watched(_JUMPS, [sign * move for move in moves]), inputs))
    return outputs


def _differ(eager: Sequence[torch.Tensor], wide: Sequence[torch.Tensor]) -> bool:
    """Whether whole numbers or truths among the outputs of eager and of float64 are not the same."""
    return any(not own.is_floating_point() and not torch.equal(own, other) for own, other in zip(eager, wide))


def _move(eager: _Call, wide: _Call) -> torch.Tensor:
    """By how much what a call jumps at is moved. A cast leaves a number as it is that was rounded before: that was moved."""
    if not wide.is_cast:
        return _margin(eager, wide, dim=None)
    given, of_eager = wide.given.double(), eager.given.double()
    # What is further off fell on either side of a jump before this one. It says nothing of what the rest of its row may be off.
    near = torch.where((of_eager - given).abs() < _NEAR, of_eager, given)
    margin = _margin(replace(eager, given=near), wide, dim=None)
    return torch.where((near == given) & (given == given.trunc()), 0.0, margin)


def _margin(eager: _Call, wide: _Call, dim: int | None) -> torch.Tensor:
    """What honest arithmetic may be off in each element that a call was given: of a row, or of a line along `dim`."""
    given = wide.given.double()
    apart = _MARGIN * torch.nan_to_num((eager.given.double() - given).abs(), nan=0.0, posinf=0.0)
    if not given.dim() or not given.numel():
        return apart + _OWN_U * given.abs()
    apart = apart.amax(dim=-1 if dim is None else dim, keepdim=True)
    return apart if dim is not None else apart + _OWN_U * given.abs()


def _chosen_alike(
    reference: Reference, inputs: InputSet, got: torch.Tensor, expected: torch.Tensor, number: int
) -> torch.Tensor | None:
    """Whether each index in output `number` points at what the `expected` one does; None where none was chosen."""
    eager, wide = _Watched(_CHOICES), _Watched(_CHOICES)
    returned = reference.outputs_under(eager, inputs, in_float64=False)[number]
    reference.outputs_under(wide, inputs)
    if [call.given.shape for call in eager.calls] != [call.given.shape for call in wide.calls]:
        return None
    for own, other in zip(eager.calls, wide.calls):
        # Whole numbers that eager has otherwise were chosen at a tie before: how far they are apart says nothing.
        is_like = own.given.is_floating_point() or torch.equal(own.given, other.given)
        if is_like and own.index is not None and torch.equal(own.index, returned.long()):
            return _point_at_the_same(own, other, got.long(), expected.long())
    return None


def _point_at_the_same(eager: _Call, wide: _Call, got: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Whether each index of `got` points at the same value as that of `expected`, to within what eager is off there."""
    values, dim = wide.given, wide.dim
    margin = _margin(eager, wide, dim if dim is not None else -1)
    if dim is None:
        values, dim, margin = values.flatten(), 0, margin.amax().expand(1)
    is_in = (got >= 0) & (got < values.shape[dim])
    own, other = (each.clamp(0, values.shape[dim] - 1) for each in (got, expected))
    is_line = got.dim() == values.dim()
    if not is_line:
        own, other = own.unsqueeze(dim), other.unsqueeze(dim)
    apart = (values.gather(dim, own).double() - values.gather(dim, other).double()).abs()
    right = apart <= margin  # a NaN is not
    if wide.is_cumulative:
        places = torch.arange(values.shape[dim], device=got.device)
        right &= own.movedim(dim, -1).le(places).movedim(-1, dim)
    elif is_line and got.shape[dim] > 1:  # several of a line: each of them once
        ordered = own.sort(dim=dim).values
        right &= (ordered.diff(dim=dim) != 0).all(dim=dim, keepdim=True)
    return (right if is_line else right.squeeze(dim)) & is_in


def _is_cast_to_whole(name: str, given: torch.Tensor, others: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether a call makes whole numbers of floating-point ones."""
    if not given.is_floating_point():
        return False
    asked = [each.dtype if isinstance(each, torch.Tensor) else each for each in (*others, *named.values())]
    return name in _CASTS_BY_NAME or name in _CASTS and any(
        isinstance(each, torch.dtype) and not (each is torch.bool or each.is_floating_point or each.is_complex) for each in asked
    )


def _index_in(name: str, made: Any) -> torch.Tensor | None:
    """The index among what a choosing function returned; None for one that returned values alone."""
    if isinstance(made, tuple):
        return made[1] if len(made) > 1 and made[1].dtype is torch.int64 else None
    return made if name.startswith("arg") else None


def _dimension_of(name: str, arguments: Sequence[Any], named: dict[str, Any]) -> int | None:
    """The dimension that a choosing function works along; None for all elements."""
    place = 2 if name in ("topk", "kthvalue") else 1
    dim = named.get("dim", arguments[place] if len(arguments) > place else None)
    if isinstance(dim, int) and not isinstance(dim, bool):
        return dim
    return None if name in ("argmax", "argmin") else -1
