"""Inputs that are drawn, and whose truths are known, before there is a worker to make launches on them.

While a killed process goes, and gives its memory back, the device is idle and the judge has nothing to do but wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.reference.expected import Truth
from harness.reference.inputs.families import GIVEN, Family
from harness.reference.inputs.sets import InputSet
from harness.reference.memory_plan import MemoryStep

if TYPE_CHECKING:
    from harness.reference.reference_model import Reference

# Of a device's memory, for inputs and truths that the next entry is checked with.
_READY_SHARE = 1 / 16


class ExpectedPool:
    """Draws by their family with their truths; each is used once."""

    def __init__(self) -> None:
        self._drawn: dict[str, list[tuple[InputSet, Truth]]] = {}
        self._taken: dict[int, tuple[InputSet, Truth]] = {}

    def lacking(self, families: Sequence[Family]) -> list[Family]:
        """Those of `families`, of which one may be named several times, that are not there."""
        there = Counter({name: len(draws) for name, draws in self._drawn.items()})
        lacking = []
        for family in families:
            if there[family.name]:
                there[family.name] -= 1
            else:
                lacking.append(family)
        return lacking

    def add(self, inputs: InputSet, truth: Truth) -> None:
        self._drawn.setdefault(inputs.family.name, []).append((inputs, truth))

    def take(self, family: Family) -> InputSet | None:
        """Inputs of this family, whose truth may then be asked for once; None where there are none."""
        draws = self._drawn.get(family.name)
        if not draws:
            return None
        draw = draws.pop()
        self._taken[id(draw[0])] = draw
        return draw[0]

    def truth_of(self, inputs: InputSet) -> Truth | None:
        """The truth of inputs that were taken; None for any others."""
        draw = self._taken.pop(id(inputs), None)
        return None if draw is None else draw[1]

    @property
    def count(self) -> int:
        """Draws that are there."""
        return sum(map(len, self._drawn.values()))

    def forget_taken(self) -> None:
        """What was taken is not asked for any more: its launch failed."""
        self._taken = {}

    def forget(self) -> None:
        """All of it."""
        self._drawn, self._taken = {}, {}


def families_checked(reference: Reference, launches: int, *, timed: bool) -> list[Family]:
    """Of each launch that is checked at the sizes of `reference`, `timed` or not, what its inputs are."""
    return [*reference.families, *[GIVEN] * (launches - 1 if timed else 0)]


def make_ready(references: Sequence[Reference], launches: int, memory_bytes: int | None) -> bool:
    """Have inputs and truths ready for the checks of whoever comes next, where a device of so much memory could not do
    more; None where it could. Returns whether nothing went wrong. `references` has the timed sizes first.
    """
    is_short = any(reference.memory.step is not MemoryStep.FULL for reference in references)
    if not memory_bytes or is_short:
        return not is_short
    room_bytes = _READY_SHARE * memory_bytes
    try:
        for position, reference in enumerate(references):
            room_bytes = reference.make_ready(families_checked(reference, launches, timed=position == 0), room_bytes)
    except Exception:  # the next one will say so, if it has no room either
        for reference in references:
            reference.forget_ready()
        return False
    return True
