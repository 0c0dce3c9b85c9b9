"""Which precision a result has: inside its bounds, or off by as much as TF32, bf16 or a leaky split would be.

A kernel that is off by precision and not by logic deserves to be told so. What no precision explains is a
mistake; the line between the two is the largest error that bf16 inputs can cause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.reference.accuracy.bounds import Bounds, is_exact, representation_u

# Products split into narrower parts, but not promoted in time or with too few parts: 128–1000 u measured.
SPLIT_CEILING_U = 4096.0
# On long sums of well-mixed data TF32's rounding errors cancel; 466 u was measured on 8192 normal terms.
MIXED_TF32_FLOOR_U = 200.0
# Where inputs rounded to TF32 were seen to cost more than a product, up to a quarter of the error scale, so may a result in
# TF32, whose other operands are rounded too, and eight times that one in bf16.
MOST_SEEN_U = 2.0**22


@dataclass(frozen=True)
class ErrorFigures:
    """The errors of one candidate's output on one set of inputs, beside eager's and the bounds, in u.

    `worst_index` is the index of the element with the largest error, `got` and `expected` its two values;
    None where they were not kept. A NaN or infinite error is outside every bound. `has_products` is whether the reference
    multiplies matrices or convolves. `evidence` is whatever was kept of a launch that is over its bounds, for those who
    report it.
    """

    max_u: float
    rms_u: float
    eager_max_u: float
    eager_rms_u: float
    family: str
    sizes: str
    bounds: Bounds
    worst_index: tuple[int, ...] | None = None
    got: float | None = None
    expected: float | None = None
    has_products: bool = True
    evidence: Any = field(default=None, compare=False, repr=False)


def within(figures: ErrorFigures) -> bool:
    """Whether both errors are inside their bounds (a NaN never is)."""
    return excess(figures) <= 1


def worst(results: Sequence[ErrorFigures]) -> ErrorFigures:
    """The result that is furthest over its bounds, or nearest to them. Raises ValueError without results."""
    if not results:
        raise ValueError("no results to judge")
    return max(results, key=excess)


def classify(results: Sequence[ErrorFigures], terms: float | None = None) -> str | None:
    """The narrowest precision class that explains all results of one candidate, or None: a mistake in logic.

    The class its bounds were made for ("fp32", unless the YAML opened another) when all are within them; else
    "split", "tf32" or "bf16", the first whose largest possible error, on top of the bounds, covers every
    result that is outside. Without an exact family in the list a small error does not prove a good
    representation (narrowing errors cancel in long sums, down to about 2¹⁴/√terms u), so from 200 u or that
    on such a result is called "tf32". Raises ValueError without results.
    """
    allowed = worst(results).bounds.precision_class
    failing = [result for result in results if not within(result)]
    if not failing:
        return allowed
    for name, ceiling_u in _wider_than(allowed):
        if all(_explained(result, name, ceiling_u) for result in failing):
            break
    else:
        return None
    if name == "split" and not any(is_exact(result.family) for result in results):
        floor_u = min(MIXED_TF32_FLOOR_U, 2**14 / math.sqrt(terms)) if terms else MIXED_TF32_FLOOR_U
        if max(result.max_u for result in failing) >= floor_u:
            return "tf32"
    return name


def reason(results: Sequence[ErrorFigures], terms: float | None = None) -> str:
    """What was found, in words, without the status: for a record that says `imprecise` in its own field.

    For a mistake in logic it names the worst element of the first result that shows it, so that inputs the
    user knows come before ours when they stand first in the list.
    """
    shown = telling(results, terms)
    if classify(results, terms) is None:
        where = "the output" if shown.worst_index is None else f"element {list(shown.worst_index)}"
        if shown.got is None or shown.expected is None:
            return f"{where} is off by {_compare_text(shown)}"
        return f"{where} is {shown.got:.7g} where {shown.expected:.7g} is expected ({_compare_text(shown)})"
    if within(shown):
        return _compare_text(shown)
    name = classify(results, terms)
    if name == "split" and not shown.has_products:
        return f"less exact than fp32: {_compare_text(shown)}"  # there is no product that could be split
    return f"{name}-class: {_compare_text(shown)}"


def telling(results: Sequence[ErrorFigures], terms: float | None = None) -> ErrorFigures:
    """The result that the verdict rests on: the first that shows a mistake in logic, else the worst."""
    if classify(results, terms) is None:
        return next(result for result in results if not within(result) and not _explained_at_all(result))
    return worst(results)


def excess(figures: ErrorFigures) -> float:
    """How many times the bound the error is, by the worse of the two; infinite for a NaN."""
    bounds = figures.bounds
    over = [figures.max_u / bounds.max_u]
    if bounds.rms_u is not None:
        over.append(figures.rms_u / bounds.rms_u)
    return math.inf if any(math.isnan(ratio) for ratio in over) else max(over)


def _wider_than(allowed: str) -> list[tuple[str, float]]:
    """The classes wider than the one allowed, narrowest first, each with what it adds to the bounds in u."""
    tf32_u, bf16_u = representation_u("tf32"), representation_u("bf16")
    classes = [("split", SPLIT_CEILING_U), ("tf32", tf32_u), ("bf16", bf16_u)]
    return classes[{"fp32": 0, "tf32": 2, "fp16": 2, "bf16": 3}[allowed] :]


def _explained(figures: ErrorFigures, name: str, ceiling_u: float) -> bool:
    finite = math.isfinite(figures.max_u) and math.isfinite(figures.rms_u)
    seen_u = {"split": 0.0, "tf32": 2.0, "bf16": 16.0}[name] * figures.bounds.tf32_u
    return finite and figures.max_u <= figures.bounds.max_u + max(ceiling_u, min(seen_u, MOST_SEEN_U))


def _explained_at_all(figures: ErrorFigures) -> bool:
    wider = _wider_than(figures.bounds.precision_class)
    return any(_explained(figures, *each) for each in wider)


def _compare_text(figures: ErrorFigures) -> str:
    bounds = figures.bounds
    got_u, eager_u, allowed_u, kind = figures.max_u, figures.eager_max_u, bounds.max_u, ""
    if bounds.rms_u is not None and figures.max_u <= bounds.max_u and figures.rms_u > bounds.rms_u:
        got_u, eager_u, allowed_u, kind = figures.rms_u, figures.eager_rms_u, bounds.rms_u, " rms"
    as_given = figures.family.replace("_", " ") == "as given"
    family = "inputs as given" if as_given else f"{figures.family} family"
    return (
        f"{_u_text(got_u)}{kind} where eager has {_u_text(eager_u)} and {_u_text(allowed_u)} is allowed; "
        f"{family}, {figures.sizes}"
    )


def _u_text(error_u: float) -> str:
    if not math.isfinite(error_u):
        return "nan" if math.isnan(error_u) else "inf"
    if error_u >= 1e6:
        return f"{error_u:.1e} u"
    return f"{error_u:.2g} u" if error_u < 10 else f"{error_u:.0f} u"
