"""How far a result may be from the truth, in units of roundoff u relative to the problem's error scale D.

The allowance grows with the error of strict PyTorch on the same inputs and with the length of the longest
sum, never with a tolerance picked by hand. Changing a constant here takes a table of all precision classes
and honest kernels before and after; tests/reference/accuracy holds the one these constants were chosen by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# Half the distance from 1 to the next number: the largest relative error of rounding to nearest.
UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}

# Roundoff of the narrowed inputs of each class a YAML may open; TF32 keeps 11 significant bits, as fp16 does.
CLASS_ROUNDOFF = {"fp32": 0.0, "tf32": 2.0**-11, "fp16": 2.0**-11, "bf16": 2.0**-8}

# Where no YAML gives a scale: over how many elements at least a scale is taken, and how many an output must have for its
# root mean square to say more than its largest error. (benchmarks/precision_without_yaml.py has the table: an element
# alone would be its own scale.)
ROW_ELEMENTS = 32

# Families of inputs for which a product has one nonzero term per element: the result is exact in fp32.
EXACT_FAMILIES = ("identity", "one-hot")

# Families whose terms have random signs: partial sums stay small, and with them the error of adding to them, in any order.
# (benchmarks/precision_in_part.py has the table: TF32 for 2 % of the terms passes with the allowance for long sums.)
SIGNED_FAMILIES = ("signs",)


@dataclass(frozen=True)
class Bounds:
    """Largest and root-mean-square error allowed, in u; `rms_u` is None where only the largest is judged.

    `tf32_u` is what inputs rounded to TF32 cost at most, where that was seen: more than it does a product, where the result
    is ill-conditioned.
    """

    max_u: float
    rms_u: float | None
    precision_class: str = "fp32"
    tf32_u: float = field(default=0.0, compare=False)


def is_exact(family: str) -> bool:
    """Whether products on this family of inputs are exact, so that no allowance for long sums is due."""
    return family.lower().replace("_", "-").startswith(EXACT_FAMILIES)


def has_random_signs(family: str) -> bool:
    """Whether the terms of products on this family of inputs cancel at random."""
    return family in SIGNED_FAMILIES


def error_unit(dtype: str) -> float:
    """The u in which errors on tensors of `dtype` are counted: 2⁻⁵³ for float64, 2⁻²⁴ for all narrower ones.

    Half-precision outputs are counted in the u of fp32 too, because their sums run in fp32: the allowance for
    long sums would otherwise be √terms units of 2⁻¹¹, nine per cent at 8192 terms. The one rounding of the
    output is in eager's own error and so in the bound.
    """
    return UNIT_ROUNDOFF["float64" if dtype == "float64" else "float32"]


def fp32_bounds(
    eager_max_u: float, eager_rms_u: float, terms: float, exact: bool, *, random_signs: bool = False
) -> Bounds:
    """Bounds of the fp32 class, in u of fp32, from strict eager's own errors on the same inputs.

    Maximum ≤ max(4·eager + 8, 2√terms) and rms ≤ max(4·eager + 1, ½√terms + 2), `terms` being the length of
    the longest sum: the factor 4 is for another order of summation, the root for a sequential sum (a random
    walk) where eager sums in blocks. `exact` families have no such sum and no such allowance. Where terms have
    `random_signs` the maximum has none: errors of a sum are a share of its partial sums, whose walk is no longer than √k
    after k terms, so that a sequential sum of any length has an rms error of 0.4 u there, D being the sum of all
    magnitudes. Where nobody says how long sums are, `bounds_without_terms` has the bounds. Raises ValueError for errors of
    eager's, or terms, that are negative or not finite: no bound follows from them.
    """
    given = {"eager's largest error": eager_max_u, "eager's rms error": eager_rms_u, "terms": terms}
    for name, value in given.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} cannot be {value}")
    max_u, rms_u = 4 * eager_max_u + 8, 4 * eager_rms_u + 1
    if not exact:
        rms_u = max(rms_u, 0.5 * math.sqrt(terms) + 2)
        if not random_signs:
            max_u = max(max_u, 2 * math.sqrt(terms))
    return Bounds(max_u, rms_u)


def representation_u(precision_class: str) -> float:
    """Largest error, in u of fp32, of a product of two inputs each narrowed to `precision_class`.

    Narrowing by truncation, as tensor cores do to an fp32 operand they read as TF32, moves an input by up to
    2·u_class, a product by (1 + 2·u_class)² − 1: 32 784 u for TF32 and fp16, 263 168 u for bf16, twice what
    rounding to nearest would cost. The sum of |a·b| being D, the error of a sum has the same bound. 0 for
    fp32. Raises ValueError for another class.
    """
    if precision_class not in CLASS_ROUNDOFF:
        raise ValueError(f"no precision class {precision_class!r}; there are {', '.join(CLASS_ROUNDOFF)}")
    moved = 2 * CLASS_ROUNDOFF[precision_class]
    return (2 * moved + moved * moved) / UNIT_ROUNDOFF["float32"]


def bounds_for(
    precision_class: str, eager_max_u: float, eager_rms_u: float, terms: float, exact: bool, *,
    random_signs: bool = False,
) -> Bounds:
    """Bounds of a precision class, in u of fp32: those of fp32 plus what narrowing the inputs may cost.

    The rms has half that allowance, 2·u_class: the most that rounding to nearest can cost, and above the rms
    of truncation (1.5·u_class for two inputs with uniform significands). Raises ValueError as `fp32_bounds`
    and `representation_u` do.
    """
    narrowing_u = representation_u(precision_class)
    base = fp32_bounds(eager_max_u, eager_rms_u, terms, exact, random_signs=random_signs)
    return Bounds(base.max_u + narrowing_u, base.rms_u + narrowing_u / 2, precision_class)
