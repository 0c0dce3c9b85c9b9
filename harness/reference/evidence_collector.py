"""What the judge keeps of a launch that failed, found on the device and only then.

A right launch costs nothing here. Where there is no memory left to look for the wrong elements, the recipe alone is
kept: evidence never changes a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from harness.reference.accuracy.bounds import Bounds
from harness.reference.element_errors import element_errors, errors_over
from harness.reference.evidence import (
    MOST_ELEMENTS, PICTURE_COLUMNS, PICTURE_ROWS, RAMP, Evidence, Mistakes, Recipe, Spread, WrongElement, jsonable,
)
from harness.reference.inputs.sets import InputSet
from harness.reference.spreads import with_arithmetic

if TYPE_CHECKING:
    from harness.reference.expected import Truth
    from harness.reference.reference_model import Reference

_SEARCHED_AT_ONCE = 1 << 22


def recipe_of(reference: Reference, sets: Sequence[InputSet], index: int = 0, *, digest: bool = True) -> Recipe:
    """The recipe of launch `index` of the segment that `sets` were given to."""
    inputs = sets[index]
    recipe = Recipe(
        dict(reference.sizes), inputs.family.name, inputs.seed, reference.seed,
        inputs_digest=inputs.digest() if digest else None,
    )
    return _behind(recipe, sets, index)


def in_segment(evidence: Evidence, sets: Sequence[InputSet], index: int) -> Evidence:
    """The evidence on launch `index` of a segment, with what was queued ahead of it."""
    return replace(evidence, recipe=_behind(evidence.recipe, sets, index))


def _behind(recipe: Recipe, sets: Sequence[InputSet], index: int) -> Recipe:
    ahead = sets[:index]
    families = tuple(each.family.name for each in ahead)
    return replace(
        recipe, before=tuple(each.seed for each in ahead), queued=len(sets),
        families_before=() if set(families) <= {recipe.family} else families,
    )


def evidence_of(
    reference: Reference, inputs: InputSet, truth: Truth, outputs: Sequence[torch.Tensor], bounds: Bounds,
    only: int | None = None,
) -> Evidence:
    """The recipe of a launch over its `bounds`, and the mistakes of its worst output, or of that numbered `only`."""
    recipe = recipe_of(reference, [inputs])
    try:
        return Evidence(recipe, _worst(truth, outputs, bounds, only))
    except torch.OutOfMemoryError:
        return Evidence(recipe)


def _worst(truth: Truth, outputs: Sequence[torch.Tensor], bounds: Bounds, only: int | None = None) -> Mistakes | None:
    """The mistakes of the worst output: errors over the largest allowed, else those above the allowed rms."""
    allowed_u = [bounds.max_u] + ([bounds.rms_u] if bounds.rms_u is not None else [])
    for limit_u in allowed_u:
        worst, mistakes = 0.0, None
        for number, (got, expected, scale) in enumerate(zip(outputs, truth.outputs, truth.scales)):
            if only not in (None, number):
                continue
            is_eagers = truth.eager and torch.equal(with_arithmetic(got), with_arithmetic(truth.eager[number]))
            if got.numel() == 0 or is_eagers:
                continue
            wrong, largest = errors_over(got, expected, scale, limit_u)
            if largest > max(limit_u, worst):
                worst, mistakes = largest, mistakes_in(number, got, expected, scale, wrong, limit_u)
        if mistakes is not None:
            return mistakes
    return None


def mistakes_in(
    number: int, got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None, wrong: torch.Tensor,
    allowed_u: float,
) -> Mistakes:
    """The elements of output `number` that are `wrong`, for their error is over `allowed_u`; there must be one."""
    rows, columns = (1, *wrong.shape)[-2:] if wrong.dim() else (1, 1)
    stack = wrong.reshape(-1, rows, columns)
    count = int(stack.sum())
    below = on = above = None
    if rows > 1 and columns > 1:
        below = int(stack.tril(-1).sum())
        on = int(stack.diagonal(dim1=-2, dim2=-1).sum())
        above = count - below - on
    return Mistakes(
        output=number, shape=tuple(got.shape), dtype=str(got.dtype).removeprefix("torch."), allowed_u=allowed_u,
        wrong=count, elements=got.numel(), first=_first(got, expected, scale, wrong),
        batches=_spread(stack.any(2).any(1)), rows=_spread(stack.any(2).any(0)), columns=_spread(stack.any(1).any(0)),
        below_diagonal=below, on_diagonal=on, above_diagonal=above, picture=picture_of(stack),
    )


def picture_of(stack: torch.Tensor) -> tuple[str, ...]:
    """The density of True in a (batches, rows, columns) mask, in at most 24 lines of 48 letters of `RAMP`."""
    batches, rows, columns = stack.shape
    high, wide = min(PICTURE_ROWS, rows), min(PICTURE_COLUMNS, columns)
    row_cell = torch.arange(rows, device=stack.device) * high // rows
    column_cell = torch.arange(columns, device=stack.device) * wide // columns
    counts = stack.sum(0, dtype=torch.float64)
    counts = torch.zeros(high, columns, dtype=torch.float64, device=stack.device).index_add_(0, row_cell, counts)
    counts = torch.zeros(high, wide, dtype=torch.float64, device=stack.device).index_add_(1, column_cell, counts)
    sizes = torch.outer(row_cell.bincount(minlength=high), column_cell.bincount(minlength=wide)) * batches
    between = len(RAMP) - 2
    levels = (1 + (counts / sizes * between).floor().clamp(max=between - 1)).long()
    levels = torch.where(counts == 0, 0, torch.where(counts == sizes, between + 1, levels))
    return tuple("".join(RAMP[level] for level in line) for line in levels.tolist())


def _first(
    got: torch.Tensor, expected: torch.Tensor, scale: torch.Tensor | None, wrong: torch.Tensor
) -> tuple[WrongElement, ...]:
    """The first wrong elements in row-major order, searched piece by piece: all may take more room than the output."""
    flat, positions = wrong.flatten(), []
    for start in range(0, flat.numel(), _SEARCHED_AT_ONCE):
        positions += (flat[start : start + _SEARCHED_AT_ONCE].nonzero().flatten()[:MOST_ELEMENTS] + start).tolist()
        if len(positions) >= MOST_ELEMENTS:
            break
    elements = []
    for position in positions[:MOST_ELEMENTS]:
        index = tuple(int(each) for each in torch.unravel_index(torch.tensor(position), got.shape))
        error = element_errors(got[index], expected[index], None if scale is None else scale[index])
        values = (jsonable(each.item()) for each in (got[index], expected[index], error))
        elements.append(WrongElement(index, *values))
    return tuple(elements)


def _spread(any_wrong: torch.Tensor) -> Spread:
    positions = any_wrong.nonzero().flatten()
    steps = positions[1:] - positions[:-1]
    step = int(steps[0]) if steps.numel() and bool((steps == steps[0]).all()) else None
    return Spread(any_wrong.numel(), positions.numel(), int(positions[0]), int(positions[-1]), step)
