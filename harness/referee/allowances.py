"""What the outputs of one reference may be off by where no YAML says how long its sums are.

Eager's own error stands in for most of it. Only a launch that is off by more has the reference's sums perturbed, once for
all launches; and inputs in TF32 are tried on the first draw, and on each one that is to show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import torch

from harness.accuracy.bounds import Bounds
from harness.accuracy.without_terms import (
    Spread, bounds_without_terms, hides_narrowing, is_rounding_noise, narrowest_bounds, of_one_sum,
)
from harness.inputs.one_way import NAME as ONE_WAY
from harness.inputs.one_way import can_be_narrowed, to_tf32
from harness.inputs.sets import InputSet
from harness.referee.casts import roundoff_u
from harness.referee.spreads import spread_between
from harness.referee.truths import Truths

Eager = Callable[[InputSet], list[torch.Tensor]]
_NOTHING = Spread(0.0, 0.0)


class Allowances:
    """The bounds of the outputs of a reference, whose strict model is `eager`; `returned` is what it made of `first`, and
    `draw` gives others.
    """

    def __init__(
        self, eager: Eager, truths: Truths, draw: Callable[[], InputSet], first: InputSet,
        returned: Sequence[torch.Tensor],
    ) -> None:
        self._eager, self._truths, self._draw = eager, truths, draw
        self._elements = [tensor.numel() if tensor.is_floating_point() else 0 for tensor in returned]
        self._types_u = [roundoff_u(tensor.dtype) if tensor.is_floating_point() else 1.0 for tensor in returned]
        self._narrowing = self._narrowing_of(first, returned)

    @property
    def hides_narrowing(self) -> bool:
        """Whether inputs as given may let TF32 pass in an output that depends on them."""
        return any(
            spread is not None and hides_narrowing(spread, self._truths.longest_sum, elements)
            for spread, elements in zip(self._narrowing, self._elements)
        )

    def bounds(
        self, number: int, eager: Spread, inputs: InputSet, precision_class: str = "fp32"
    ) -> Iterator[Bounds]:
        """Bounds of output `number` on `inputs`, on which strict eager is off by `eager`: each is wider than the one
        before and takes longer to work out, and what is within one of them is right.
        """
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

    def is_rounding_noise(self, number: int, eager: Spread) -> bool:
        """Whether output `number`, in which strict eager is off by `eager`, is rounding noise: nothing can be compared
        with it.
        """
        return is_rounding_noise(eager, max(self._truths.narrowest_u, self._types_u[number]))

    @cached_property
    def _sums(self) -> list[Spread | None]:
        """What other orders of the reference's sums change in each output."""
        try:
            return self._truths.spread_of_sums(self._draw())
        except RuntimeError:  # no room for it, or a model that cannot be looked into
            return [of_one_sum(self._truths.longest_sum)] * len(self._elements)

    def _narrowing_of(self, inputs: InputSet, returned: Sequence[torch.Tensor]) -> list[Spread | None]:
        """What inputs in TF32 cost each output, beside `returned`; None where that is not known, or nothing is lost.

        A model that casts to a narrower type itself is not asked: there is nothing to be seen behind that.
        """
        try:
            narrowed = None if self._truths.narrowest_u > 1 else _in_tf32(inputs)
            if narrowed is not None:
                return spread_between(self._eager(narrowed), returned)
        except RuntimeError:  # no room
            pass
        return [None] * len(self._elements)


def _in_tf32(inputs: InputSet) -> InputSet | None:
    """The same inputs rounded to TF32; None where nothing of them is lost by that."""
    narrowed, is_other = replace(inputs, region=inputs.region.clone()), False
    for tensor in narrowed.tensors():
        if can_be_narrowed(tensor):
            tensor.copy_(to_tf32(tensor))
            is_other = True
    return narrowed if is_other else None
