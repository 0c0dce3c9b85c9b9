"""What another order of summation may change in the outputs of a reference, found by changing its sums.

The longest sum of a model says little of its outputs: a mean after it takes nearly all of its error away, a difference
makes it larger. So each sum of the reference is moved by what an honest order may move it by, at random, and carried
through to the outputs by the model itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from harness.reference.accuracy.bounds import ROW_ELEMENTS
from harness.reference.accuracy.bounds_without_terms import Spread, chain_spread_u
from harness.reference.casts import cast_type, roundoff_u
from harness.reference.reduction_length import is_product, sum_length
from harness.reference.spreads import pooled, row_scale, spread_between

# Evaluations of an output of few elements, of which one may move by little for once.
_TIMES_OF_FEW = 4
# What a logarithm makes of a sum is off by as much as the sum is in proportion, however large it is itself.
_LOGARITHMS = ("logsumexp", "log_softmax", "logcumsumexp")


class PerturbedSums(TorchFunctionMode):
    """While entered, each sum of T terms is off by ½√T u of the largest in its row, up or down, and each cast to a type
    narrower than float32 by half a unit in its last place. `unit` is u.
    """

    def __init__(self, unit: float, seed: int) -> None:
        super().__init__()
        self._unit, self._seed = unit, seed
        self._drawn: dict[torch.device, torch.Generator] = {}

    def __torch_function__(self, function, types_, arguments=(), named=None):
        named = named or {}
        name = getattr(function, "__name__", "")
        made = function(*arguments, **named)
        if not _is_floating(made) or named.get("out") is not None or not made.numel():
            return made
        wide = made if made.dtype.itemsize >= 4 else made.float()  # eight bits have no arithmetic
        terms = sum_length(name, arguments, named, made)
        if terms > 1:
            scale = torch.ones_like(wide) if name in _LOGARITHMS else row_scale(wide)
            by_u = chain_spread_u(terms, of_product=is_product(name))
            return self._moved(wide, by_u * scale).to(made.dtype)
        asked = cast_type(function, arguments, named)
        if asked is not None and roundoff_u(asked) > 1 and _is_floating(arguments[0] if arguments else None):
            return self._moved(wide, roundoff_u(asked) * wide.abs()).to(made.dtype)
        return made

    def _moved(self, tensor: torch.Tensor, by_u: torch.Tensor) -> torch.Tensor:
        if tensor.device not in self._drawn:  # numbers of its own: PyTorch's are the reference's
            self._drawn[tensor.device] = torch.Generator(tensor.device).manual_seed(1 + self._seed)
        generator = self._drawn[tensor.device]
        signs = torch.empty_like(tensor, dtype=torch.float32).bernoulli_(0.5, generator=generator)
        return tensor + (2 * signs - 1).to(tensor.dtype) * (by_u * self._unit)


def spread_of_sums(
    evaluate: Callable[[contextlib.AbstractContextManager[Any]], Sequence[torch.Tensor]], unit: float
) -> list[Spread | None]:
    """The spread of each output of `evaluate`, which runs a model under a mode, around what it returns by itself."""
    plain = [tensor.clone() for tensor in evaluate(contextlib.nullcontext())]
    few = any(tensor.is_floating_point() and tensor.numel() < ROW_ELEMENTS for tensor in plain)
    spreads = []
    for seed in range(_TIMES_OF_FEW if few else 1):
        moved = evaluate(PerturbedSums(unit, seed))
        moved = [each.double() if each.is_floating_point() else each for each in moved]
        spreads.append([_in_units(each, unit) for each in spread_between(moved, plain)])
    return [pooled(of_output) for of_output in zip(*spreads)]


def _in_units(spread: Spread | None, unit: float) -> Spread | None:
    """A spread of float64 in `unit`."""
    share = 2.0**-53 / unit
    return None if spread is None else Spread(spread.max_u * share, spread.rms_u * share)


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
