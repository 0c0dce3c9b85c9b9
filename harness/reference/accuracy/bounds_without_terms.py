"""The bounds of a problem that says neither its error scale nor how long its sums are, as a KernelBench file does.

Three things stand in for the formula of a YAML: strict eager's own error, what another order of the reference's sums
would change in this very output, and what inputs rounded to TF32 would. benchmarks/precision_without_yaml.py has the
table of honest kernels and narrower precisions that the constants were chosen by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from harness.reference.accuracy.bounds import ROW_ELEMENTS, Bounds, representation_u

# No kernel adds more numbers than this in one chain: longer sums are cut into pieces, one for each thread. Of a product
# the plainest kernel has a thread for each element, which adds all its terms.
LONGEST_CHAIN, LONGEST_PRODUCT = 1 << 14, 1 << 20
# What no order of summation explains by itself. From here on eager proves little by being as far off.
FAR_U = 2 * math.sqrt(LONGEST_CHAIN)
FAR_RMS_U = 0.5 * math.sqrt(LONGEST_CHAIN) + 2
# Eager's root mean square from which on an output is what rounding left of it: half of TF32's unit of roundoff.
NOISE_RMS_U = 2.0**12
# Inputs rounded to TF32 are plain to see where they cost so many times what is allowed.
PLAIN = 4.0


@dataclass(frozen=True)
class Spread:
    """How far two evaluations of one output lie apart: the largest distance and the root mean square, in u."""

    max_u: float
    rms_u: float


def chain_spread_u(terms: float, *, of_product: bool = False) -> float:
    """The root-mean-square error allowed to a sum of `terms`, in u of the largest in its row: ½√terms, up to a chain."""
    return 0.5 * math.sqrt(min(terms, LONGEST_PRODUCT if of_product else LONGEST_CHAIN))


def of_one_sum(terms: float) -> Spread:
    """The spread of an output that is a sum of `terms` and nothing else."""
    rms_u = chain_spread_u(terms)
    return Spread(rms_u, rms_u)


def narrowest_bounds(eager: Spread, elements: int, precision_class: str = "fp32") -> Bounds:
    """What is right in any case: 4·eager + 8, rms 4·eager + 2, as far as an order of summation explains them."""
    return _opened(min(4 * eager.max_u + 8, FAR_U), min(4 * eager.rms_u + 2, FAR_RMS_U), elements, precision_class)


def bounds_without_terms(
    eager: Spread, sums: Spread, narrowing: Spread | None, elements: int, precision_class: str = "fp32", *,
    shows_narrowing: bool = False,
) -> Bounds:
    """Bounds in u of one output of `elements` elements.

    The maximum is 10·`eager` + 8, or what other orders of summation spread it by (`sums`): four times their root mean
    square, or twice the largest. The root mean square is 4·eager + 4 or that of the sums + 2; of fewer than
    `ROW_ELEMENTS` elements it is not judged, since it says no more than the maximum.

    `narrowing` is what inputs rounded to TF32 cost, None where that is not known. It holds eager down where eager is
    further off than any order of summation explains: then half of it is allowed, or a quarter more than eager itself.
    On inputs chosen so that it `shows_narrowing` half of it is allowed, and no less than 4·eager + 8 and half of what is
    allowed to the sums: there rounding errors of inputs add up, and those of sums do not.
    """
    if precision_class != "fp32":
        narrowing = None
    by_eager, by_eager_rms = 10 * eager.max_u + 8, 4 * eager.rms_u + 4
    if narrowing is not None and by_eager > FAR_U:
        by_eager = max(FAR_U, min(by_eager, max(narrowing.max_u / 2, 1.25 * eager.max_u + 8)))
    if narrowing is not None and by_eager_rms > FAR_RMS_U:
        by_eager_rms = max(FAR_RMS_U, min(by_eager_rms, max(narrowing.rms_u / 2, 1.25 * eager.rms_u + 2)))
    max_u = max(by_eager, 4 * sums.rms_u, 2 * sums.max_u)
    rms_u = max(by_eager_rms, sums.rms_u + 2)
    if shows_narrowing and narrowing is not None:
        max_u = max(4 * eager.max_u + 8, narrowing.max_u / 2, 2 * sums.rms_u)
        rms_u = max(4 * eager.rms_u + 2, narrowing.rms_u / 2, sums.rms_u / 2 + 2)
    bounds = _opened(max_u, rms_u, elements, precision_class)
    return bounds if narrowing is None else replace(bounds, tf32_u=narrowing.max_u)


def hides_narrowing(narrowing: Spread, terms: float, elements: int) -> bool:
    """Whether inputs rounded to TF32 may pass in an output that is `narrowing` off with them, `terms` being the longest
    sum of the reference. In a few elements they always may, since those are one draw; in many that do not depend on them
    there is nothing to hide.
    """
    allowed = of_one_sum(terms)
    plain = (
        narrowing.max_u == 0 or narrowing.max_u >= PLAIN * max(4 * allowed.rms_u, 8)
        or narrowing.rms_u >= PLAIN * (allowed.rms_u + 4)
    )
    return elements < ROW_ELEMENTS or not plain


def is_rounding_noise(eager: Spread, narrowest_u: float = 1.0) -> bool:
    """Whether an output is rounding noise, so that nothing can be compared with it: the error of strict `eager`, in u,
    is not that of a result.

    `narrowest_u` is the unit roundoff of the narrowest type the reference itself casts to, in u of fp32 (1 for fp32): so
    much coarser are the results of such a reference, but half of the scale is too much for any.
    """
    return eager.rms_u > min(NOISE_RMS_U * narrowest_u, 2.0**23)


def _opened(max_u: float, rms_u: float, elements: int, precision_class: str) -> Bounds:
    narrowing_u = representation_u(precision_class)
    judged_rms_u = rms_u + narrowing_u / 2 if elements >= ROW_ELEMENTS else None
    return Bounds(max_u + narrowing_u, judged_rms_u, precision_class)
