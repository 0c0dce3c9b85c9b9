"""What the outputs of one reference may be off by where no YAML says how long its sums are.

Eager's own error stands in for most of it. Only a launch that is off by more has the reference's sums perturbed, once for
all launches; and inputs in TF32 are tried on the first draw, and on each one that is to show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import torch

from harness.reference.accuracy.bounds import ROW_ELEMENTS, Bounds
from harness.reference.accuracy.bounds_without_terms import (
    FAR_U, Spread, bounds_without_terms, hides_narrowing, is_rounding_noise, narrowest_bounds, of_one_sum,
)
from harness.reference.casts import NarrowestMade
from harness.reference.expected import Truths
from harness.reference.inputs.families import SIGNS, Family
from harness.reference.inputs.one_way_rounding import NAME as ONE_WAY, can_be_narrowed, to_tf32
from harness.reference.inputs.pieces import pieces_of
from harness.reference.inputs.sets import InputSet
from harness.reference.spreads import spread_between

Eager = Callable[[InputSet], list[torch.Tensor]]
_NOTHING = Spread(0.0, 0.0)
_CHOICES = 5  # draws: where TF32 changes a choice in one of two, one that is judged in a dozen launches is caught


class MeasuredBounds:
    """The bounds of the outputs of a reference, whose strict model is `eager`; `returned` is what it made of `first`, and
    `draw` gives others.
    """

    def __init__(
        self, eager: Eager, truths: Truths, draw: Callable[[], InputSet], first: InputSet,
        returned: Sequence[torch.Tensor],
    ) -> None:
        self._eager, self._truths, self._draw = eager, truths, draw
        self._elements = [tensor.numel() if tensor.is_floating_point() else 0 for tensor in returned]
        with NarrowestMade() as made:
            narrowed = self._on_narrowed(first)
        self._narrowing = self._apart(narrowed, returned)
        self._chose_alike = not any(self._elements) and truths.longest_sum > 1 and _are_equal(narrowed, returned)
        del narrowed  # more calls of eager follow, which need its memory
        # What the reference rounds to itself hides what TF32 would lose, and is no noise.
        self._narrowest_u = max(truths.narrowest_u, made.u)
        if self._narrowest_u > 1:
            self._narrowing = [None] * len(self._elements)
        hidden = [
            elements for spread, elements in zip(self._narrowing, self._elements)
            if spread is not None and hides_narrowing(spread, truths.longest_sum, elements)
        ]
        self._hides = bool(hidden)
        self._shows_by_signs = self._hides and min(hidden) >= ROW_ELEMENTS and self._turns_with(first, returned)

    def family(self, one_way: Family) -> Family | None:
        """The family of inputs on which TF32 shows where inputs as given may let it pass, `one_way` or signs; None where
        they do not.

        A sum of the very inputs, long enough for that, rounds what is added as TF32 does, but for one with random signs: so
        where the outputs turn their signs with all inputs, as such sums do, these are drawn.
        """
        if not self._hides:
            return None
        return SIGNS if self._shows_by_signs else one_way

    @cached_property
    def chooses_alike_in_tf32(self) -> bool:
        """Whether all outputs are choices by what was summed, so few that inputs in TF32 change none in several draws."""
        if not self._chose_alike:
            return False
        others = (self._draw() for _ in range(_CHOICES - 1))
        return all(_are_equal(self._on_narrowed(inputs), self._eager(inputs)) for inputs in others)

    def bounds(self, number: int, eager: Spread, inputs: InputSet, precision_class: str = "fp32") -> Iterator[Bounds]:
        """Bounds of output `number` on `inputs`, on which strict eager is off by `eager`: each is wider than the one
        before and takes longer to work out, and what is within one of them is right. Rounding noise has the size of eager's
        to keep, and no more is asked of it.
        """
        if self.is_rounding_noise(eager):
            yield Bounds(10 * eager.max_u + 8, None, precision_class)
            return
        elements, shows = self._elements[number], inputs.family.name == ONE_WAY
        yield narrowest_bounds(eager, elements, precision_class)
        narrowing = self._narrowing
        if shows:
            narrowing = self._narrowing_of(inputs, self._eager(inputs))
        else:
            yield bounds_without_terms(eager, _NOTHING, narrowing[number], elements, precision_class)
        yield bounds_without_terms(
            eager, self._sums[number] or _NOTHING, narrowing[number], elements, precision_class, shows_narrowing=shows
        )

    def is_rounding_noise(self, eager: Spread) -> bool:
        """Whether an output in which strict eager is off by `eager` is rounding noise: nothing can be compared with it."""
        return is_rounding_noise(eager, self._narrowest_u)

    @cached_property
    def _sums(self) -> list[Spread | None]:
        """What other orders of the reference's sums change in each output."""
        try:
            return self._truths.spread_of_sums(self._draw())
        except Exception:  # no room for it, or a model that cannot be looked into
            return [of_one_sum(self._truths.longest_sum)] * len(self._elements)

    def _narrowing_of(self, inputs: InputSet, returned: Sequence[torch.Tensor]) -> list[Spread | None]:
        """What inputs in TF32 cost each output, beside `returned`; None where that is unknown or nothing is lost."""
        return self._apart(self._on_narrowed(inputs), returned)

    def _on_narrowed(self, inputs: InputSet) -> Sequence[torch.Tensor] | None:
        """What eager returns of these inputs in TF32; None where that is unknown, or they lose nothing by it."""
        try:
            narrowed, is_other = _narrowed_set(inputs)
            return self._eager(narrowed) if is_other else None
        except Exception:  # no room, or a model that refuses them
            return None

    def _apart(self, narrowed: Sequence[torch.Tensor] | None, returned: Sequence[torch.Tensor]) -> list[Spread | None]:
        try:
            return [None] * len(self._elements) if narrowed is None else spread_between(narrowed, returned)
        except Exception:  # no room
            return [None] * len(self._elements)

    def _turns_with(self, inputs: InputSet, returned: Sequence[torch.Tensor]) -> bool:
        """Whether the outputs turn their signs with the inputs', to within what sums may lose."""
        turned = replace(inputs, region=inputs.region.clone())
        try:
            for tensor in turned.tensors():
                if tensor.is_floating_point():
                    tensor.neg_()
            apart = spread_between([-each if each.is_floating_point() else each for each in self._eager(turned)], returned)
        except Exception:  # no room, or what may not be negative
            return False
        return all(spread is None or spread.max_u < FAR_U for spread in apart)


def _are_equal(narrowed: Sequence[torch.Tensor] | None, returned: Sequence[torch.Tensor]) -> bool:
    return narrowed is not None and all(map(torch.equal, narrowed, returned))


def _narrowed_set(inputs: InputSet) -> tuple[InputSet, bool]:
    """The same inputs rounded to TF32, and whether anything of them is lost by that."""
    narrowed, is_other = replace(inputs, region=inputs.region.clone()), False
    for tensor in narrowed.tensors():
        if can_be_narrowed(tensor):
            for piece in pieces_of(tensor):
                piece.copy_(to_tf32(piece))
            is_other = True
    return narrowed, is_other
