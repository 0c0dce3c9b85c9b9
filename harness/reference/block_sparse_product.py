"""A product of matrices in float64 without the multiplications by blocks of zeros: what it holds, and as the sum of that.

Triangular, banded, block-diagonal and masked operands are alike here, whatever made their blocks zero. Which products of
a model are made so is `block_sparse_models`'s.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

# Of the multiply-adds, what may be left for the blocks to be worth leaving out.
MOST_LEFT = 0.75
_BLOCKS = (128, 512)

Shape = tuple[int, int, int]


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
        """Whether the pieces of `a @ b` are all of it (a bool on the device); False where an element is not finite."""
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
    pieces, columns_of_a, rows_of_b = [], [], []
    for index in range(deep):
        rows, columns = _hull([line[index] for line in of_a]), _hull(of_b[index])
        if rows and columns:
            inner = slice(index * block, min((index + 1) * block, k))
            pieces.append(Piece(_elements(rows, block, m), inner, _elements(columns, block, n)))
        # Where one of the two holds nothing it must stay so, and the other may hold anything.
        columns_of_a.append(_within(rows if rows and columns else range(high if rows else 0), high))
        rows_of_b.append(_within(columns if rows and columns else range(0 if rows else wide), wide))
    may_hold = [held for line in zip(*columns_of_a) for held in line] + [held for line in rows_of_b for held in line]
    return Held(block, _joined(pieces), torch.tensor(may_hold, device=a.device))


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
    """The largest distance of `made` from `a @ b` over |a||b|, by strips; infinite where a zero is none, or NaN."""
    worst = a.new_zeros(())
    for top, left in itertools.product(range(0, a.shape[0], strip), range(0, b.shape[1], strip)):
        rows, columns = a[top:top + strip], b[:, left:left + strip]
        distance = (made[top:top + strip, left:left + strip] - rows @ columns).abs()
        relative = distance / (rows.abs() @ columns.abs())
        worst = torch.maximum(worst, torch.where(distance == 0, 0.0, relative).amax())
    return float(worst)


def _magnitudes_of_both(a: torch.Tensor, b: torch.Tensor, block: int) -> torch.Tensor:
    return torch.cat([_magnitudes(each, block).flatten() for each in (a, b)])


def _magnitudes(operand: torch.Tensor, block: int) -> torch.Tensor:
    """One number a block, without a copy of the matrix: zero where all elements are, infinite or NaN where one is."""
    strips = []
    for top, bottom, height in _parts(operand.shape[0], block):
        row = []
        for left, right, width in _parts(operand.shape[1], block):
            row.append(_size_of(operand[top:bottom, left:right].unflatten(1, (-1, width)).unflatten(0, (-1, height))))
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
