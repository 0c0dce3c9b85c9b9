"""Products of matrices in float64 without the multiplications by blocks of zeros, for the truth of each launch.

Triangular, banded, block-diagonal and masked operands are alike here. A `Search` finds while a model runs which blocks
hold nothing, whatever made them so, which products are worth leaving them out of, and that these come out the same;
`without` leaves those blocks out of these products, and of no others. Each later draw is looked at too, whether it
holds nothing there: the device is asked for all products and waited for once.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# What the look takes is small beside a product as large as this number's cube with no side below half of it: on an H200
# two triangles of 2048 take 0.38 ms for 0.31, of 3072 0.54 for 0.95, of 4096 0.91 for 2.22. On a CPU it is not the
# arithmetic but the waiting for each other of threads whose cores others use too: alone 512 would do.
LEAST_SIZE = {"cuda": 2560, "cpu": 1536}
# Of the multiply-adds, what may be left for the blocks to be worth leaving out.
MOST_LEFT = 0.75
# Apart by more than this, relative to the product of magnitudes, is more than another order of summation explains.
MOST_APART = 1e-13
_BLOCKS = (128, 512)

Shape = tuple[int, int, int]
# A product of a model: its shape (m, k, n), and how many of that shape the model makes before it.
Place = tuple[Shape, int]


@dataclass(frozen=True)
class Piece:
    """The part of a product that the terms `inner` add to: outside these rows and columns they add zeros."""

    rows: slice
    inner: slice
    columns: slice

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return math.prod(each.stop - each.start for each in (self.rows, self.inner, self.columns))


@dataclass(frozen=True)
class _Product:
    """A call of PyTorch's that multiplies `a`, (m, k), by `b`, (k, n); `finish` makes a @ b what the call returns."""

    a: torch.Tensor
    b: torch.Tensor
    finish: Callable[[torch.Tensor], torch.Tensor]

    @property
    def shape(self) -> Shape:
        return (*self.a.shape, self.b.shape[1])


def block_of(inner: int) -> int:
    """The block for a sum of `inner` terms: an eighth of it, within what a BLAS multiplies at full speed."""
    return min(max(inner // 8 // 64 * 64, _BLOCKS[0]), _BLOCKS[1])


@dataclass(frozen=True)
class Held:
    """What of a product was seen to hold something: its `pieces`, in blocks of `block` elements.

    `may_hold` says of each block of the first operand, and then of the second, whether it may hold something without
    the product holding more than the pieces.
    """

    block: int
    pieces: Sequence[Piece]
    may_hold: torch.Tensor

    def holds_all_of(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Whether the pieces of `a @ b` are all of it: a bool on the device. False where an element is infinite or NaN,
        since zero times that is not zero.
        """
        magnitudes = _magnitudes_of_both(a, b, self.block)
        return (magnitudes.isfinite() & (self.may_hold | (magnitudes == 0))).all()


def held_by(a: torch.Tensor, b: torch.Tensor, block: int) -> Held | None:
    """What of `a @ b` is not zero whatever the values, its pieces in order of the inner axis; waits once for the device.

    `a` is (m, k) and `b` (k, n); `block` is in elements. None where an element is infinite or NaN, since zero times
    that is not zero.
    """
    magnitudes = _magnitudes_of_both(a, b, block).tolist()
    if not all(map(math.isfinite, magnitudes)):
        return None
    (m, k), n = a.shape, b.shape[1]
    high, deep, wide = (math.ceil(size / block) for size in (m, k, n))
    of_a, of_b = _table(magnitudes[:high * deep], deep), _table(magnitudes[high * deep:], wide)
    found, columns_of_a, rows_of_b = [], [], []
    for index in range(deep):
        rows, columns = _hull([line[index] for line in of_a]), _hull(of_b[index])
        if rows and columns:
            inner = slice(index * block, min((index + 1) * block, k))
            found.append(Piece(_elements(rows, block, m), inner, _elements(columns, block, n)))
        # Where one of the two holds nothing it must stay so, and the other may hold anything.
        columns_of_a.append(_within(rows if rows and columns else range(high if rows else 0), high))
        rows_of_b.append(_within(columns if rows and columns else range(0 if rows else wide), wide))
    may_hold = [held for line in zip(*columns_of_a) for held in line] + [held for line in rows_of_b for held in line]
    return Held(block, _joined(found), torch.tensor(may_hold, device=a.device))


def product(a: torch.Tensor, b: torch.Tensor, pieces: Sequence[Piece]) -> torch.Tensor:
    """`a @ b` as the sum of its `pieces`: a new contiguous (m, n) tensor."""
    made = a.new_zeros(a.shape[0], b.shape[1])
    for each in pieces:
        made[each.rows, each.columns].addmm_(a[each.rows, each.inner], b[each.inner, each.columns])
    return made


def worth_leaving_out(a: torch.Tensor, b: torch.Tensor, block: int | None = None) -> Held | None:
    """What `a @ b` holds, or None where its blocks of zeros are fewer than a quarter of the work."""
    held = held_by(a, b, block or block_of(a.shape[1]))
    if held is None or sum(each.work for each in held.pieces) > MOST_LEFT * a.numel() * b.shape[1]:
        return None
    return held


def apart(made: torch.Tensor, a: torch.Tensor, b: torch.Tensor, strip: int = 1024) -> float:
    """The largest distance of `made` from `a @ b` relative to |a||b|, found strip by strip to save memory.

    Infinite where an element must be zero and is not; NaN where one is NaN.
    """
    worst = a.new_zeros(())
    for top, left in itertools.product(range(0, a.shape[0], strip), range(0, b.shape[1], strip)):
        rows, columns = a[top:top + strip], b[:, left:left + strip]
        distance = (made[top:top + strip, left:left + strip] - rows @ columns).abs()
        relative = distance / (rows.abs() @ columns.abs())
        worst = torch.maximum(worst, torch.where(distance == 0, 0.0, relative).amax())
    return float(worst)


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
        found = _product_in(function, arguments, named)
        made = None
        if found is not None:
            place = found.shape, self._made[found.shape]
            self._made[found.shape] += 1
            with torch._C.DisableTorchFunction():  # whoever watches the model is to see the model's own calls only
                made = self.compute(found, place)
        return function(*arguments, **named) if made is None else made

    def compute(self, found: _Product, place: Place) -> torch.Tensor | None:
        """What the call returns, or None where PyTorch shall compute it."""
        raise NotImplementedError


class Search(_Products):
    """Leaves every product as it is; `held` has what those hold of which blocks of zeros are a quarter or more, and that
    come out the same without them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[Place, Held] = {}

    def compute(self, found: _Product, place: Place) -> None:
        held = _worth_it(found.a, found.b)
        if held is not None:
            self.held[place] = held


class _LeftOut(_Products):
    """Computes products from what they are said to hold."""

    def __init__(self, held: Mapping[Place, Held], sound: list[torch.Tensor]) -> None:
        super().__init__()
        self._held, self._sound = held, sound

    def compute(self, found: _Product, place: Place) -> torch.Tensor | None:
        held = self._held.get(place)
        if held is None:
            return None
        self._sound.append(held.holds_all_of(found.a, found.b))
        return found.finish(product(found.a, found.b, held.pieces))


def without(held: Mapping[Place, Held], sound: list[torch.Tensor]) -> contextlib.AbstractContextManager[Any]:
    """While entered, a model's products are made from what they are said to hold; to `sound` comes of each, on the
    device, whether that is all of it. Where it is not, what came of the product is wrong.
    """
    return _LeftOut(held, sound) if held else contextlib.nullcontext()


def _worth_it(a: torch.Tensor, b: torch.Tensor) -> Held | None:
    try:
        held = worth_leaving_out(a, b)
        return held if held is not None and apart(product(a, b, held.pieces), a, b) <= MOST_APART else None
    except torch.OutOfMemoryError:  # the search holds more than a truth does
        return None


def _product_in(function: Any, arguments: Sequence[Any], named: Mapping[str, Any]) -> _Product | None:
    aten = torch.ops.aten
    if named:  # addmm with factors
        return None
    if function is aten.mm.default:
        found = _Product(*arguments, lambda made: made)
    elif function is aten.addmm.default:
        added, *factors = arguments
        found = _Product(*factors, lambda made: made.add_(added))
    elif function is aten.bmm.default and arguments[0].shape[0] == 1:
        found = _Product(*[each[0] for each in arguments], lambda made: made[None])
    else:
        return None
    for each in (found.a, found.b):
        if each.dtype != torch.float64 or type(each) not in (torch.Tensor, torch.nn.Parameter):
            return None
        if each.layout != torch.strided:
            return None
    least = LEAST_SIZE.get(found.a.device.type, math.inf)
    return found if math.prod(found.shape) >= least**3 and min(found.shape) >= least / 2 else None


def _magnitudes_of_both(a: torch.Tensor, b: torch.Tensor, block: int) -> torch.Tensor:
    return torch.cat([_magnitudes(each, block).flatten() for each in (a, b)])


def _magnitudes(operand: torch.Tensor, block: int) -> torch.Tensor:
    """One number for each block of a matrix, the last ones smaller: zero where all its elements are, infinite or NaN
    where one of them is, and without a copy of the operand.
    """
    strips = []
    for top, bottom, height in _parts(operand.shape[0], block):
        row = []
        for left, right, width in _parts(operand.shape[1], block):
            blocks = operand[top:bottom, left:right].unflatten(1, (-1, width)).unflatten(0, (-1, height))
            row.append(_size_of(blocks))
        strips.append(torch.cat(row, 1))
    return torch.cat(strips)


def _size_of(blocks: torch.Tensor) -> torch.Tensor:
    if blocks.is_cuda:  # one reading, limited by memory
        return torch.linalg.vector_norm(blocks, 1, dim=(1, 3))
    return torch.maximum(blocks.amax((1, 3)), -blocks.amin((1, 3)))  # on a CPU two of these are far faster


def _parts(size: int, block: int) -> list[tuple[int, int, int]]:
    """(start, stop, length of a block) of the whole blocks of an axis, and of what is left over."""
    whole = size - size % block
    parts = [(0, whole, block), (whole, size, size - whole)]
    return [part for part in parts if part[0] < part[1]]


def _table(numbers: Sequence[float], width: int) -> list[Sequence[float]]:
    return [numbers[start:start + width] for start in range(0, len(numbers), width)]


def _hull(magnitudes: Sequence[float]) -> range:
    """From the first block that holds something to the last."""
    held = [index for index, magnitude in enumerate(magnitudes) if magnitude]
    return range(held[0], held[-1] + 1) if held else range(0)


def _elements(blocks: range, block: int, size: int) -> slice:
    """Those of some blocks along an axis of `size`."""
    return slice(blocks.start * block, min(blocks.stop * block, size))


def _within(blocks: range, count: int) -> list[bool]:
    return [index in blocks for index in range(count)]


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbours along the inner axis with the same rows and columns are one piece."""
    joined: list[Piece] = []
    for each in pieces:
        last = joined[-1] if joined else None
        if last and (last.rows, last.columns, last.inner.stop) == (each.rows, each.columns, each.inner.start):
            joined[-1] = Piece(each.rows, slice(last.inner.start, each.inner.stop), each.columns)
        else:
            joined.append(each)
    return joined
