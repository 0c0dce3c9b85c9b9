"""The workloads or benchmarks of a foreign problem as sizes, one of which is timed while the others are checks.

A case's sizes are its whole numbers, by name, where these tell all cases apart. Otherwise they are its number in the file.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_NUMBER = "case"
_TAKEN = frozenset({"torch", "types", "linecache", "builtins", "sys", "Model", "get_inputs"})  # by the modules that are written


@dataclass(frozen=True)
class Case:
    """One entry: `values` by name (axes, or arguments), and the `inputs` that a workload describes; `is_timed` where it may
    be timed and not only checked. `sizes` are what tells it apart.
    """

    values: Mapping[str, Any]
    inputs: Mapping[str, Any]
    is_timed: bool = True
    sizes: Mapping[str, int] | None = None

    @property
    def extent(self) -> int:
        """The product of its whole numbers, by which the largest case is found."""
        return math.prod(value for value in self.values.values() if _is_size(value))


def with_sizes(cases: Sequence[Case]) -> list[Case]:
    """Return the cases with their sizes, the largest that may be timed first, and none twice."""
    names = [name for name in cases[0].values if all(_is_size(case.values.get(name)) for case in cases) and _is_name(name)]
    by_name = [replace(case, sizes={name: case.values[name] for name in names}) for case in cases]
    by_number = [replace(case, sizes={_NUMBER: number}) for number, case in enumerate(cases, 1)]
    different = [case for index, case in enumerate(cases) if not any(_are_alike(case, other) for other in cases[:index])]
    is_told_apart = bool(names) and len({tuple(case.sizes.values()) for case in by_name}) == len(different)
    sized = by_name if is_told_apart else by_number
    timed = max((case for case in sized if case.is_timed), key=lambda case: case.extent)
    kept: list[Case] = []
    for case in (timed, *sized):
        if not any(_are_alike(case, other) for other in kept):
            kept.append(case)
    return kept


def _are_alike(one: Case, other: Case) -> bool:
    return one.values == other.values and one.inputs == other.inputs


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_name(name: str) -> bool:
    is_free = name not in _TAKEN and not name.startswith("_")
    return name.isidentifier() and not keyword.iskeyword(name) and is_free
