"""What is kept of a launch that failed: how its inputs were drawn, which elements were wrong, and where they lie.

Plain values for the raw samples of a run and back; the judge finds them (`reference.evidence_collector`),
`report.evidence_text` puts them into words. A recipe says everything that the launch's inputs hang on, and is written
down after the fact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

MOST_ELEMENTS = 8
PICTURE_ROWS, PICTURE_COLUMNS = 24, 48
RAMP = " .:-=+*#%@"  # a blank has no wrong element in it, an @ nothing else


@dataclass(frozen=True)
class Recipe:
    """How to draw the inputs of a launch again: `get_inputs` at `sizes` under `seed`, turned into `family`.

    `model_seed` is that under which reference and candidate were constructed. `before` are the seeds of the launches
    that were queued ahead of it in the same segment and `families_before` their families, where these are not all its
    own; `queued` is how many that segment had. `inputs_digest` is of the bytes that the launch was given, so that
    another device's generator is found out; None where it was not taken.
    """

    sizes: dict[str, int]
    family: str
    seed: int
    model_seed: int
    before: tuple[int, ...] = ()
    queued: int = 1
    inputs_digest: str | None = None
    families_before: tuple[str, ...] = ()


@dataclass(frozen=True)
class WrongElement:
    """One element; a value that JSON has no number for is "nan", "inf" or "-inf"."""

    index: tuple[int, ...]
    got: float | int | bool | str
    expected: float | int | bool | str
    error_u: float | str


@dataclass(frozen=True)
class Spread:
    """Positions along one axis with a wrong element: `count` of `size`, `first` to `last`, `step` (or None) apart."""

    size: int
    count: int
    first: int
    last: int
    step: int | None


@dataclass(frozen=True)
class Mistakes:
    """The elements of one output (`output` counts from 0) that are off by more than `allowed_u`.

    The last two axes are rows and columns, all others batches; counts below, on and above the diagonal are None for an
    output that is no matrix. `picture` is the density of wrong elements, a line of `RAMP` for each stretch of rows,
    over all batches.
    """

    output: int
    shape: tuple[int, ...]
    dtype: str
    allowed_u: float
    wrong: int
    elements: int
    first: tuple[WrongElement, ...]
    batches: Spread
    rows: Spread
    columns: Spread
    below_diagonal: int | None
    on_diagonal: int | None
    above_diagonal: int | None
    picture: tuple[str, ...]


@dataclass(frozen=True)
class Evidence:
    """A failed launch; `mistakes` is None where it was not values that were wrong (a shape, a crash)."""

    recipe: Recipe
    mistakes: Mistakes | None = None
    paths: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain values. Seeds are decimal text: JSON readers of other languages round whole numbers beyond 2⁵³."""
        body = asdict(self)
        body["recipe"]["seed"] = str(self.recipe.seed)
        body["recipe"]["before"] = [str(seed) for seed in self.recipe.before]
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Evidence:
        """Undo `to_json`, after a journey through JSON. Raises KeyError, TypeError or ValueError for anything else."""
        recipe = dict(body["recipe"])
        recipe["seed"], recipe["before"] = int(recipe["seed"]), tuple(int(seed) for seed in recipe["before"])
        recipe["families_before"] = tuple(map(str, recipe.get("families_before", ())))
        mistakes = body.get("mistakes")
        if mistakes is not None:
            elements = (WrongElement(**{**each, "index": tuple(each["index"])}) for each in mistakes["first"])
            spreads = {name: Spread(**mistakes[name]) for name in ("batches", "rows", "columns")}
            plain = {"shape": tuple(mistakes["shape"]), "picture": tuple(mistakes["picture"]), "first": tuple(elements)}
            mistakes = Mistakes(**{**mistakes, **plain, **spreads})
        return cls(Recipe(**recipe), mistakes, dict(body.get("paths") or {}))


def jsonable(value: float | int | bool) -> float | int | bool | str:
    """The value itself, or its name where it is not finite."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
