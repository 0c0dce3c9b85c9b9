"""The products of a model in float64 that are made without their blocks of zeros, for the truth of each launch.

A `Search` finds while a model runs which of its products are worth that, and that they come out the same; `without`
leaves the blocks out of these products, and of no others. Each later draw is looked at too, whether it holds nothing
there: the device is asked for all products and waited for once.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.model.device_limits import limits_of
from harness.reference.block_sparse_product import Held, Shape, apart, product, worth_leaving_out

# Apart by more than this, relative to the product of magnitudes, is more than another order of summation explains.
MOST_APART = 1e-13

# A product of a model: its shape (m, k, n), and how many of that shape the model makes before it.
Place = tuple[Shape, int]


@dataclass(frozen=True)
class _Product:
    """A call of PyTorch's that multiplies `a`, (m, k), by `b`, (k, n); `finish` makes a @ b what the call returns."""

    a: torch.Tensor
    b: torch.Tensor
    finish: Callable[[torch.Tensor], torch.Tensor]

    @property
    def shape(self) -> Shape:
        return (*self.a.shape, self.b.shape[1])


class _Products(TorchDispatchMode):
    """While entered, each product of two float64 matrices that is large enough goes through `compute`.

    It sees what PyTorch's functions come down to, so that `@`, `linear`, `einsum` and backward passes are alike.
    """

    def __init__(self) -> None:
        super().__init__()
        self._made: Counter[Shape] = Counter()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: PyTorch would import its compiler for that, a second of every start; nothing is compiled here."""
        return False

    def __torch_dispatch__(self, function, types_, arguments=(), named=None):
        named = named or {}
        call = _product_in(function, arguments, named)
        made = None
        if call is not None:
            place = call.shape, self._made[call.shape]
            self._made[call.shape] += 1
            with torch._C.DisableTorchFunction():  # whoever watches the model is to see the model's own calls only
                made = self.compute(call, place)
        return function(*arguments, **named) if made is None else made

    def compute(self, call: _Product, place: Place) -> torch.Tensor | None:
        """What the call returns, or None where PyTorch shall compute it."""
        raise NotImplementedError


class Search(_Products):
    """Leaves every product as it is; `held` has those that blocks of zeros can be left out of, with what they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[Place, Held] = {}

    def compute(self, call: _Product, place: Place) -> None:
        with contextlib.suppress(torch.OutOfMemoryError):  # the search holds more than a truth does
            held = worth_leaving_out(call.a, call.b)
            if held is not None and apart(product(call.a, call.b, held.pieces), call.a, call.b) <= MOST_APART:
                self.held[place] = held


class _LeftOut(_Products):
    """Computes products from what they are said to hold."""

    def __init__(self, held: Mapping[Place, Held], sound: list[torch.Tensor]) -> None:
        super().__init__()
        self._held, self._sound = held, sound

    def compute(self, call: _Product, place: Place) -> torch.Tensor | None:
        held = self._held.get(place)
        if held is None:
            return None
        self._sound.append(held.holds_all_of(call.a, call.b))
        return call.finish(product(call.a, call.b, held.pieces))


def without(held: Mapping[Place, Held], sound: list[torch.Tensor]) -> contextlib.AbstractContextManager[Any]:
    """While entered, a model's products are made from what they are said to hold; to `sound` comes of each, on the
    device, whether that is all of it. Where it is not, what came of the product is wrong.
    """
    return _LeftOut(held, sound) if held else contextlib.nullcontext()


def _product_in(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> _Product | None:
    aten = torch.ops.aten
    if named:  # addmm with factors
        return None
    if function is aten.mm.default:
        call = _Product(*arguments, lambda made: made)
    elif function is aten.addmm.default:
        added, *factors = arguments
        call = _Product(*factors, lambda made: made.add_(added))
    elif function is aten.bmm.default and arguments[0].shape[0] == 1:
        call = _Product(*[each[0] for each in arguments], lambda made: made[None])
    else:
        return None
    for each in (call.a, call.b):
        is_plain = type(each) in (torch.Tensor, torch.nn.Parameter) and each.layout == torch.strided
        if each.dtype != torch.float64 or not is_plain:
            return None
    least = limits_of(call.a.device.type).product_size
    return call if math.prod(call.shape) >= least**3 and min(call.shape) >= least / 2 else None
